// Package hashslot tells which of a Redis Cluster's 16384 slots a key belongs to, and finds a short text for each slot, so that a second key
// can be placed in the slot of any first one.
//
// The rule is the cluster specification's: CRC16 (XMODEM) modulo 16384, of the part of the key between the first { and the first } after it
// if that part is not empty, otherwise of the whole key.
package hashslot

import (
	"strings"
	"sync"
)

// Count is the number of slots of a Redis Cluster.
const Count = 16384

// Of returns the slot of key.
func Of(key string) int { return int(crc16(Hashed(key)) % Count) }

// Hashed returns the part of key that decides its slot: the hash tag if there is one, else the whole key.
func Hashed(key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			return key[open+1 : open+1+length]
		}
	}
	return key
}

// Tag returns a text of at most four lower-case letters and digits whose slot is slot. It is the same in every process. It panics if slot is
// not in [0, Count).
func Tag(slot int) string { return tags()[slot] }

// tags is computed at the first use: about 170,000 short checksums.
var tags = sync.OnceValue(func() *[Count]string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	var table [Count]string
	missing := Count
	for n := uint(0); missing > 0; n++ {
		var text []byte
		for rest := n; ; rest /= uint(len(digits)) {
			text = append(text, digits[rest%uint(len(digits))])
			if rest < uint(len(digits)) {
				break
			}
		}
		if slot := crc16(string(text)) % Count; table[slot] == "" {
			table[slot] = string(text)
			missing--
		}
	}
	return &table
})

func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^s[i]]
	}
	return crc
}

// crcTable is CRC16's table for the polynomial x^16 + x^12 + x^5 + 1.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
