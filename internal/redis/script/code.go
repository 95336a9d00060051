package script

import (
	"errors"

	lua "github.com/yuin/gopher-lua"
)

// longList is how many elements of a list one instruction of this machine can number. In a longer literal list the instruction is followed by
// an extra word, which the compiler mistakes for an operator's operand; so fence puts a call between the list and its operator.
const longList = 25_550

// mend corrects the compiled code of lists with more elements than an instruction can number: the compiler would lose the elements from 25,551 on. It
// refuses loops with too long a jump: the compiler would make them jump to a wrong place.
func mend(proto *lua.FunctionProto) error {
	blocks := make(map[uint32]uint32) // by the register of a list: how many of its blocks are filled
	for at := 0; at < len(proto.Code); at++ {
		word := proto.Code[at]
		register := word >> 18 & 0xff
		switch int(word >> 26) {
		case lua.OP_SETLIST:
			if block := word >> 9 & 0x1ff; block != 0 {
				blocks[register] = block
				continue
			}
			at++ // the extra word is the block's number
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

// jump is the distance that an instruction jumps.
func jump(word uint32) int { return int(word&0x3ffff) - 0x1ffff }
