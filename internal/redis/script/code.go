package script

import (
	"errors"

	lua "github.com/yuin/gopher-lua"
)

// longList is how many elements an instruction of this machine can number. In a longer list that is written out another word follows the
// instruction, which the compiler takes for an operator's operand; so fence puts a call between the list and its operator.
const longList = 25_550

// mend corrects what the compiler wrote of lists that are longer than an instruction can say, and refuses loops that are: it would have lost
// the elements from 25,551 on, and jumped anywhere.
func mend(proto *lua.FunctionProto) error {
	blocks := make(map[uint32]uint32) // by the register of a list: how many blocks of it are filled
	for at := 0; at < len(proto.Code); at++ {
		word := proto.Code[at]
		register := word >> 18 & 0xff
		switch int(word >> 26) {
		case lua.OP_SETLIST:
			if block := word >> 9 & 0x1ff; block != 0 {
				blocks[register] = block
				continue
			}
			at++ // the word after it is the block's number
			blocks[register]++
			proto.Code[at] = blocks[register]
		case lua.OP_FORPREP:
			end := at + 1 + jump(word)
			if end < 0 || end >= len(proto.Code) || int(proto.Code[end]>>26) != lua.OP_FORLOOP || end+1+jump(proto.Code[end]) != at+1 {
				return errors.New(chunkName + ":1: control structure too long")
			}
		case lua.OP_CLOSURE:
			at += int(proto.FunctionPrototypes[word&0x3ffff].NumUpvalues)
		}
	}
	for _, inner := range proto.FunctionPrototypes {
		if err := mend(inner); err != nil {
			return err
		}
	}
	return nil
}

// jump is how far an instruction jumps.
func jump(word uint32) int { return int(word&0x3ffff) - 0x1ffff }
