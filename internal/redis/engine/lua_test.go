package engine

import (
	"flag"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

var luaTime = flag.Duration("lua", 0, "how long TestLuaBesideRedis compares programs")

// What may differ in the result of a program: the words of errors, which have no place here, and the sign of what is not a number.
var (
	luaWords = regexp.MustCompile(`attempt to[^|"]*|'for'[^|"]*|__len undefined|__unm undefined|cannot perform[^|"]*`)
	luaSign  = strings.NewReplacer("-nan", "nan", "-NAN", "NAN")
)

// luaFrame surrounds each program: L notes what is done, in order, T counts the calls, so that functions return at once after too many, and C
// cuts texts, which would else double in each turn of a loop, and the words of errors. A program sees no address: tostring gives tables and functions none.
const luaFrame = `local N,P,plain=0,{},tostring
local function tostring(v) local y=type(v) if y=='number' then v=v+0 end if y=='table' or y=='function' then return y end return plain(v) end
local function C(s) if type(s)=='string' and s:sub(1,12)=='user_script:' then return s:sub(1,15) end if type(s)=='string' and #s>60 then return s:sub(1,50) end return s end
local function S(v,d) if type(v)=='table' then if d>2 then return '{}' end local r={} for i=1,#v do r[i]=S(v[i],d+1) end return '{'..table.concat(r,',')..';'..S(v.a,d+1)..S(v.b,d+1)..'}' end
if type(v)=='function' then return 'f' end return tostring(v) end
local function L(...) if #P<300 then for i=1,select('#',...) do P[#P+1]=C(S((select(i,...)),0)) end P[#P+1]='|' end return ... end
local function T() N=N+1 return N>99 end
local function M(...)
%s end
local r={pcall(M,1,'x',3)} for i=1,4 do P[#P+1]=i==2 and not r[1] and type(r[2])=='string' and 'E'..r[2]:sub(1,16) or S(r[i],0) end return table.concat(P,' ')`

func luaResult(reply string) string {
	return luaSign.Replace(luaWords.ReplaceAllString(reply, "words"))
}

// TestLuaBesideRedis runs random programs on the engine and on a real Redis 8, each time other ones, and prints the first that differs.
// It still finds kinds of programs that do, so it runs only where it is asked to: -lua=1m.
func TestLuaBesideRedis(t *testing.T) {
	effort.Alone(t)
	if *luaTime == 0 {
		t.Skip("a search, not a proof: -lua=1m")
	}
	r := newRealTarget(t, realServer(t))
	defer r.close()
	seed := effort.Seed(t, *differentialSeed&^1) // 1, the default, is no seed here
	s := newStage(Options{})
	s.do("", "CONFIG", "SET", "busy-reply-threshold", "100")
	programs, failed, long := 0, 0, 0
	differ := func(text string) (got, want string, ok bool) {
		got, ended := playLua(s, text)
		if !ended {
			t.Logf("killed after %d steps:\n%s", longestLua, text)
			long++
			return "", "", false
		}
		got, want = luaResult(got), luaResult(r.do("", "EVAL", text, "0"))
		return got, want, got != want
	}
	for end := time.Now().Add(*luaTime); time.Now().Before(end); programs++ {
		text := drawLua(rand.New(rand.NewPCG(seed, uint64(programs))), nil)
		_, want, ok := differ(text)
		if strings.HasPrefix(want, "-") {
			failed++
			if strings.Contains(want, "Error compiling") {
				t.Fatalf("the program is not valid: %s\n%s", want, text)
			}
		}
		if !ok {
			continue
		}
		text = shrinkLua(text, func(text string) bool {
			got, want, ok := differ(text)
			return ok && !strings.Contains(got+want, "Error compiling")
		})
		got, want, _ := differ(text)
		t.Fatalf("program %d\n%s\n   got %s\n Redis %s", programs, text, got, want)
	}
	t.Logf("%d programs, %d of them failed, %d took too long", programs, failed, long)
}

// longestLua is after how many steps of about a millisecond a program is killed. Redis does not get such a program.
const longestLua = 500

func playLua(s *stage, text string) (reply string, ended bool) {
	session, steps := s.session(""), 0
	for out := s.Do(s.now, session, [][]byte{[]byte("EVAL"), []byte(text), []byte("0")}); out == Yielded; out = s.Resume(s.now, session) {
		s.now += 1000
		if steps++; steps == longestLua {
			s.do("killer", "SCRIPT", "KILL")
		}
	}
	return s.take(""), steps < longestLua
}

// A program that runs for ever is killed, and the next one is played.
func TestRandomLuaIsLimited(t *testing.T) {
	s := newStage(Options{})
	s.do("", "CONFIG", "SET", "busy-reply-threshold", "100")
	if reply, ended := playLua(s, "while true do end"); ended || !strings.Contains(reply, "killed") {
		t.Errorf("ended: %v, with %s", ended, reply)
	}
	if reply, ended := playLua(s, "return 1"); !ended || reply != ":1" {
		t.Errorf("ended: %v, with %s", ended, reply)
	}
}

// Every choice that a program can be made of is drawn: each place's and each kind of statement's.
func TestEveryConstructOfRandomLuaIsDrawn(t *testing.T) {
	drawn := map[uintptr][]int{}
	for i := range effort.Times(900, 20_000) {
		drawLua(rand.New(rand.NewPCG(1, uint64(i))), drawn)
	}
	for _, pc := range slices.Sorted(maps.Keys(drawn)) {
		frame, _ := runtime.CallersFrames([]uintptr{pc + 1}).Next()
		t.Logf("%s:%d %v", filepath.Base(frame.File), frame.Line, drawn[pc])
		if never := slices.Index(drawn[pc], 0); never >= 0 {
			t.Errorf("%s:%d: choice %d of %d is never drawn", filepath.Base(frame.File), frame.Line, never, len(drawn[pc]))
		}
	}
}

// shrinkLua removes lines from a program while it stays as interesting.
func shrinkLua(text string, interesting func(string) bool) string {
	for lines := strings.Split(text, "\n"); ; {
		smaller := false
		for n := min(len(lines), 12); n > 0 && !smaller; n-- {
			for at := 0; at+n <= len(lines) && !smaller; at++ {
				rest := append(append([]string{}, lines[:at]...), lines[at+n:]...)
				if interesting(strings.Join(rest, "\n")) {
					lines, smaller = rest, true
				}
			}
		}
		if !smaller {
			return strings.Join(lines, "\n")
		}
	}
}
