package engine

import "testing"

// scriptsBeside are played on the engine and on a real Redis, which must reply the same.
var scriptsBeside = []string{
	"return 1",
	"return 3.99",
	"return -3.99",
	"return 'x'",
	"return true",
	"return false",
	"return nil",
	"return {1,2,nil,3}",
	"return {1,{2,'a'},true,false}",
	"return {ok='fine'}",
	"return {err='My Err'}",
	"return {err='-X y'}",
	"return {err='X'}",
	"return redis.error_reply('My Err')",
	"return redis.error_reply('-X y')",
	"return redis.error_reply('ERR y')",
	"return redis.error_reply('X')",
	"return redis.status_reply('ST')",
	"return redis.error_reply(1)",
	"return redis.error_reply()",
	"return redis.status_reply()",
	"return redis.sha1hex('')",
	"return redis.sha1hex(12)",
	"return redis.sha1hex()",
	"return redis.call('set','k','v')",
	"return redis.call('get','k')",
	"return redis.call('get','none')",
	"return redis.call('incr','k')",
	"return redis.pcall('incr','k')",
	"return redis.pcall('incr','k').err",
	"return redis.call('nosuch')",
	"return redis.call('get')",
	"return redis.call()",
	"return redis.call({})",
	"return redis.call('get',{})",
	"return redis.call('subscribe','x')",
	"return redis.call('blpop','l',0)",
	"return x",
	"x=1",
	"return undefined_fn()",
	"local t=nil return t.x",
	"return 'a'+1",
	"error('boom')",
	"error({err='TBL boom'})",
	"return pcall(error,'x')",
	"local ok,e=pcall(redis.call,'incr','k') return e",
	"local ok,e=pcall(redis.call,'incr','k') return e.err",
	"local ok,e=pcall(redis.call,'incr','k') return {type(e),e.err,e.source,e.line}",
	"return {KEYS[1],ARGV[1],#KEYS,#ARGV}",
	"if then",
	"redis.setresp(3) redis.call('hset','h','f','v') return redis.call('hmget','h','f','none','f')",
	"return redis.call('pfcount','none')",
	"return cjson.encode({1,2,3})",
	"return cjson.encode({a=1})",
	"return cjson.encode({})",
	"return cjson.encode('a\"b/\\n')",
	"return cjson.encode(1.5)",
	"return cjson.encode(1e20)",
	"return cjson.encode({1,nil,3})",
	"return cjson.encode({[1]=1,[100]=2})",
	"return cjson.encode({true,false,cjson.null})",
	"return cjson.decode('[1,2,{\"a\":null}]')[3].a==cjson.null",
	"return cjson.decode('{')",
	"return cjson.decode('[1.5,\"\\\\u00e9\"]')",
	"return tostring(cjson.null)",
	"return cjson.encode(function() end)",
	"return redis.setresp(3)",
	"redis.setresp(3) return redis.call('hgetall','h')",
	"redis.setresp(3) return redis.call('get','none')",
	"return {double=3.5}",
	"return {map={a=1}}",
	"return {set={a=true}}",
	"return {big_number='123'}",
	"return tostring(1e15)",
	"return tostring(0.1)",
	"return tostring(100)",
	"return 1e300",
	"return math.huge",
	"return 0/0",
	"return redis.REDIS_VERSION",
	"return redis.REDIS_VERSION_NUM",
	"return redis.log(redis.LOG_WARNING,'x')",
	"return redis.replicate_commands()",
	"return bit.band(5,3)",
	"return bit.tohex(255)",
	"return os.clock()>=0",
	"return os.time()",
	"return string.format('%s %d %5.2f',1,2,3)",
	"return #redis.call('keys','*')",
	"return redis.call('multi')",
	"return {1,2,'x',{ok='s'},{err='e'}}",
	"return loadstring('return 5')()",
	"return print('x')",
	"return dofile('x')",
	"return type(_G)",
	"_G.y=1",
	"return rawset(_G,'y',1)",
	"setmetatable(_G,{})",
	"return table.concat({1,2},',')",
	"return unpack({1,2,3})",
	"return select('#',1,2)",
	"return #ARGV",
	"return tonumber('0x10')",
	"return string.rep('x',3)",
	"KEYS={} return 1",
	"local redis=nil return 1",
	"redis.call=nil",
	"return redis.pcall('nosuch')",
	"return redis.pcall('subscribe','x')",
	"return {redis.call('time')[1]==redis.call('time')[1]}",
	"return tostring({}) ~= nil",
	"return redis.set_repl(redis.REPL_ALL)",
	"return redis.acl_check_cmd('get','x')",
	"return math.random()==math.random()",
	"return redis.call('eval','return 1',0)",
	"#!lua\nreturn 7",
	"#!lua flags=no-writes\nreturn redis.call('set','k',1)",
	"#!foo\nreturn 1",
	"#!lua flags=bad\nreturn 1",
	"#!lua foo=bar\nreturn 1",
	"return redis.call('select',1)",
	"return redis.call('get','k')",
	"return redis.call('config','get','hz')",
	"return redis.call('client','id')",
	"return redis.call('ping')",
	"return redis.call('echo',12)",
	"return redis.call('echo',1.5)",
	"return redis.call('echo',true)",
	"return redis.call('foo\\r\\nbar')",
	"return {err='a\\r\\nb'}",
	"return {ok='a\\r\\nb'}",
	"return 'x', 'y'",
	"local a={} a[1]=1 a[2]=2 a.x=3 return a",
	"goto x",
	"return redis['foo']",
	"redis.foo = 1",
	"return tostring(redis.call)~=nil",
	"return getmetatable('').__index==string",
	"return string.gsub('abc','b','x')",
	"return ('x'):rep(2)",
	"return next({})",
	"return {nil}",
	"return {false}",
	"return redis.call('hgetall','h')",
	"local x <const> = 1",
	"redis.call('zadd','zh',math.huge,'m') local s=redis.call('zscore','zh','m') redis.call('del','zh') return s",
	"return redis.call('echo',-math.huge)",
	"return redis.call('echo',0/0)",
	"return {tostring(1/0),tostring(-1/0),tostring(0/0),tostring(math.huge),'x'..1/0,tostring(1/0==math.huge)}",
	"return string.format('%g %G %E %f %+f %5.1F',1/0,-1/0,0/0,-1/0,1/0,0/0)",
	"return string.format('%g %G %E %f %+f %6g|',1/0,-1/0,0/0,-1/0,1/0,0/0)",
	"return {tostring(tonumber('inf')),tostring(tonumber('-Infinity')),tostring(tonumber('1e400')),tostring(tonumber('0x1p4')),tostring(tonumber('0x1.8'))}",
	"return {tostring(tonumber('1_0')),tostring(tonumber('+-1')),tostring(tonumber('')),tostring(tonumber('0x')),tostring(tonumber(' 7\\n')),tostring(tonumber('1e')),tostring(tonumber('.5')),tostring(tonumber('5.')),tostring(tonumber('x'))}",
	"return {tostring(tonumber('-ff',16)),tostring(tonumber('0xff',16)),tostring(tonumber('zz',36)),tostring(tonumber('8',8)),tostring(tonumber('99999999999999999999999',16)),tostring(tonumber(' 11 ',2)),tostring(tonumber('',2))}",
	"return tonumber('z',37)",
	"return tonumber('z',1)",
	"return tonumber()",
	"return tostring(tonumber({}))",
	"return tonumber({},16)",
	"return tostring(tonumber(12,16))",
	"return redis.acl_check_cmd('nope')",
	"return redis.acl_check_cmd()",
	"return redis.acl_check_cmd('get')",
	"return redis.acl_check_cmd({})",
	"return redis.log(1)",
	"return redis.log(9,'x')",
	"return redis.log(-1,'x')",
	"return redis.log('x','x')",
	"return redis.log('1','x')",
	"return redis.set_repl(99)",
	"return redis.set_repl()",
	"return redis.set_repl('x')",
	"return redis.set_repl(-1)",
	"return math.random(1,2,3)",
	"return math.random(0)",
	"return math.random(2,1)",
	"return math.random(1e300)",
	"return math.random('x')",
	"return math.random(3,3)",
	"return math.randomseed()",
	"math.randomseed(7) local a=math.random(1000) math.randomseed(7) return a==math.random(1000)",
	"return redis.call('monitor')",
	"return redis.call('shutdown')",
	"error(1)",
	"error('boom',2)",
	"error()",
	"return {pcall(error)}",
	"error(nil)",
	"error('x',100)",
	"error('x',0)",
	"error(true)",
	"local function f() error('deep',2) end\nf()",
	"local ok,e=pcall(error,'x',1) return e",
	"return string.format('a%cb',0)",
	"return string.format('a%3cb%-3cc',0,0)",
	"return string.format('%')",
	"return string.format('%',1)",
	"return string.format('%d')",
	"return redis.pcall('nosuch').ignore_error_stats_update",
	"redis.call('SET','k','v') return redis.pcall('INCR','k').ignore_error_stats_update",
	"return redis.call('SAVE')",
	"return redis.call('BGSAVE')",
	"return redis.call('FUNCTION','LIST')",
	"return redis.call('FCALL','f',0)",
	"return redis.acl_check_cmd('bgsave')",
}

// scriptsApart are the scripts that this Lua machine answers differently, with its answers.
var scriptsApart = map[string]string{
	"local t=nil return t.x": "-ERR user_script:1: attempt to index field 'x' (a nil value) script: a880d6559d35ef21d2f7f38d57f710c3835a5497, on @user_script:1.",
	"return os.time()":       "-ERR user_script:1: attempt to call a nil value script: 13dea82ee9da896aebcd10f5e36f4a1eeb839b48, on @user_script:1.",
}

func TestScriptsBesideRedis(t *testing.T) {
	r := newRealTarget(t, realServer(t))
	defer r.close()
	for _, proto := range []string{"2", "3"} {
		s := newStage(Options{})
		s.do("", "HELLO", proto)
		r.do("", "HELLO", proto)
		for _, text := range scriptsBeside {
			got, want := s.do("", "EVAL", text, "0"), r.do("", "EVAL", text, "0")
			if apart, ok := scriptsApart[text]; ok {
				if got != apart {
					t.Errorf("RESP%s EVAL %q 0\n   got %s\n noted %s\n Redis %s", proto, text, got, apart, want)
				}
				continue
			}
			if got != want {
				t.Errorf("RESP%s EVAL %q 0\n   got %s\n Redis %s", proto, text, got, want)
			}
		}
	}
}

func TestEvalArguments(t *testing.T) {
	play(t, Options{}, `
		EVAL "return 1"                              -ERR wrong number of arguments for 'eval' command
		EVAL "return 1" a                            -ERR value is not an integer or out of range
		EVAL "return 1" -1                           -ERR Number of keys can't be negative
		EVAL "return 1" 2 a                          -ERR Number of keys can't be greater than number of args
		EVAL "return {KEYS[1],KEYS[2],ARGV[1]}" 2 a b c  ["a", "b", "c"]
		EVALSHA abc 0                                -NOSCRIPT No matching script. Please use EVAL.
		EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0  -NOSCRIPT No matching script. Please use EVAL.
		SCRIPT LOAD "return 1"                       "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
		EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0  :1
		EVALSHA_RO e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0  :1
		EVAL_RO "return redis.call('set','a',1)" 1 a  -ERR Write commands are not allowed from read-only scripts. script: 119b0beb461d5982ddacc6dda6829882d5e16b4d, on @user_script:1.
		EVAL_RO "return redis.call('get','a')" 1 a   (nil)
		EVAL_RO "#!lua\nreturn 1" 0                   -ERR Can not execute a script with write flag using *_ro command.
		EVAL_RO "#!lua flags=no-writes\nreturn 1" 0   :1
		SCRIPT LOAD "if then"                        -ERR Error compiling script (new function): user_script:1: unexpected symbol near 'then'
		SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db x  [:1, :0]
		SCRIPT FLUSH FOO                             -ERR SCRIPT FLUSH only support SYNC|ASYNC option
		SCRIPT FLUSH ASYNC                           +OK
		SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db  [:0]
		SCRIPT KILL                                  -NOTBUSY No scripts in execution right now.
		SELECT 3                                     +OK
		EVAL "redis.call('set','k','v') redis.call('select',5) return redis.call('get','k')" 0  (nil)
		GET k                                        "v"
		COMMAND GETKEYS EVAL x 2 a b c               ["a", "b"]
		COMMAND GETKEYS EVAL x 0                     []
	`)
}

// What a script says about itself counts before it runs: the replies are Redis 8's.
func TestFlagsOfScripts(t *testing.T) {
	const oom, no = "-OOM command not allowed when used memory > 'maxmemory'.", "-READONLY You can't write against a read only replica."
	s := newStage(Options{})
	s.expect(t,
		`SET a v`, `+OK`,
		`SCRIPT LOAD "#!lua\nreturn 1"`, `"cb70127618f0b0be70c53cf6bfcfa54a29d9b0c0"`,
		`EVAL "#!lua flags=allow-oom,\nreturn 1" 0`, `-ERR Unexpected flag in script shebang:`,
		`EVAL "#!lua flags=\nreturn 1" 0`, `:1`,
		`MULTI`, `+OK`,
		`EVAL "#!lua\nreturn 1" 0`, `+QUEUED`,
		`@cb CONFIG SET maxmemory 1`, `+OK`,
		`EXEC`, `-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.`,
		`EVAL "return 1" 0`, `:1`,
		`EVAL "#!lua\nreturn 1" 0`, oom,
		`EVAL_RO "#!lua\nreturn 1" 0`, oom,
		`EVAL "#!lua flags=allow-stale\nif then" x`, oom,
		`EVALSHA CB70127618F0B0BE70C53CF6BFCFA54A29D9B0C0 0`, oom,
		`EVAL "#!lua flags=allow-oom\nreturn redis.call('SET','a','b')" 0`, `+OK`,
		`EVAL "#!lua flags=no-writes\nreturn redis.call('GET','a')" 0`, `"b"`,
		`EVAL "return redis.call('SET','a','b')" 0`, `-OOM command not allowed when used memory > 'maxmemory'. script: 0a9f75e991483d02789696e4c90d26c10395863e, on @user_script:1.`,
		`EVAL "#!lua flags=bad\n" 0`, `-ERR Unexpected flag in script shebang: bad`,
		`MULTI`, `+OK`,
		`GET a`, `+QUEUED`,
		`EVAL "#!lua flags=allow-oom\nreturn redis.call('SET','a','c')" 0`, `+QUEUED`,
		`EXEC`, `["b", +OK]`,
		`MULTI`, `+OK`,
		`EVAL "#!lua\nreturn 1" 0`, oom,
		`EXEC`, `-EXECABORT Transaction discarded because of previous errors.`,
		`CONFIG SET maxmemory 0`, `+OK`,
	)
	const write, read = `EVAL "#!lua\nreturn 1" 0`, `EVAL "#!lua flags=no-writes\nreturn 1" 0`
	s = newStage(Options{})
	s.expect(t, "CLIENT PAUSE 100000 WRITE", "+OK", read, ":1", "@cb EVAL 'return 1' 0", "", "@cc "+write, "", "CLIENT UNPAUSE", "+OK")
	s.Follow(&Master{})
	s.expect(t, write, no, read, ":1", "EVAL 'return 1' 0", ":1", "MULTI", "+OK", write, no, "EXEC", "-EXECABORT Transaction discarded because of previous errors.")
}

// An error value that is not an error object crashes Redis 8.0.2; here it is an error.
func TestErrorsThatKillRedis(t *testing.T) {
	play(t, Options{}, `
		EVAL "error({})" 0    -ERR unknown error script: 367bf7fe449ba40e54d99d9086aa3c2164008136, on @user_script:1.
		PING                  +PONG
	`)
}

func TestTimeStandsStillInAScript(t *testing.T) {
	s := newStage(Options{})
	s.expect(t, "SET k v PX 10", "+OK")
	text := "local a=redis.call('pttl','k') for i=1,200000 do end return a==redis.call('pttl','k') and redis.call('get','k')"
	if out := s.start("EVAL", text, "0"); out != Yielded {
		t.Fatalf("outcome %v, want Yielded", out)
	}
	s.now += 1e6
	s.Tick(s.now) // must not reap what the script still sees
	if got := s.finish(t); got != `"v"` {
		t.Errorf("got %s", got)
	}
	s.expect(t, "GET k", "(nil)")
}

// start runs a command and returns its outcome; finish resumes it until the reply is complete.
func (s *stage) start(args ...string) Outcome {
	var all [][]byte
	for _, a := range args {
		all = append(all, []byte(a))
	}
	return s.Do(s.now, s.session(""), all)
}

func (s *stage) finish(t *testing.T) string {
	t.Helper()
	for range 10000 {
		if s.Resume(s.now, s.session("")) == Done {
			return s.take("")
		}
		s.now += 1000
	}
	t.Fatal("the script does not end")
	return ""
}

func TestAScriptThatDoesNotEnd(t *testing.T) {
	s := newStage(Options{})
	s.expect(t, "@ca HELLO 3", "", "CONFIG SET busy-reply-threshold 50", "+OK")
	if out := s.start("EVAL", "while true do pcall(function() while true do end end) end", "0"); out != Yielded {
		t.Fatalf("outcome %v, want Yielded", out)
	}
	for i := 0; i < 60; i++ {
		if s.Busy() != (i > 50) {
			t.Fatalf("Busy is %v after %d ms", s.Busy(), i-1)
		}
		if s.Resume(s.now, s.session("")) != Yielded {
			t.Fatal("it ended")
		}
		s.now += 1000
	}
	const busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	s.expect(t, "@ca GET k", busy, "@ca PING", busy, "@ca MULTI", "+OK",
		"@ca EXEC", "-EXECABORT Transaction discarded because of: "+busy[1:], "@ca BAD", "-ERR unknown command 'BAD', with args beginning with:",
		"@ca SCRIPT KILL", "+OK")
	if got, want := s.finish(t), "-ERR Script killed by user with SCRIPT KILL... script: "; len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("got %s", got)
	}
	s.expect(t, "@ca GET k", "null", "EVAL 'return 1' 0", ":1")
}

func TestAScriptThatWroteIsNotKilled(t *testing.T) {
	s := newStage(Options{})
	s.start("EVAL", "redis.call('set','k','v') for i=1,1000000 do end return 7", "0")
	s.expect(t, "@ca SCRIPT KILL", "-UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.")
	if got := s.finish(t); got != ":7" {
		t.Errorf("got %s", got)
	}
}

// A script's changes are announced when it has ended, and blocked sessions are served then.
func TestOthersSeeAScriptWhenItEnds(t *testing.T) {
	s := newStage(Options{})
	s.expect(t, "@ca BLPOP l 0", "", "@cb SUBSCRIBE c", `["subscribe", "c", :1]`,
		"EVAL \"redis.call('rpush','l','x') redis.call('rpush','l','y') return redis.call('publish','c','m')\" 0", ":1",
		"@out a", `["l", "x"]`, "@out b", `["message", "c", "m"]`, "LRANGE l 0 -1", `["y"]`)
}

func BenchmarkEval(b *testing.B) {
	s := newStage(Options{})
	s.line("SCRIPT LOAD \"return redis.call('get',KEYS[1])\"")
	sum := s.scripts.chunks
	var sha string
	for sha = range sum {
	}
	args := [][]byte{[]byte("EVALSHA"), []byte(sha), []byte("1"), []byte("k")}
	session := s.session("")
	b.ReportAllocs()
	for b.Loop() {
		s.Do(s.now, session, args)
		session.Out.Take(nil)
	}
}
