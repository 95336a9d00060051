package panel

// Button is what can be pressed.
type Button string

const (
	ExpireEverything Button = "expire"    // every product and page that is kept ends now
	EmptyRedis       Button = "empty"     // all that is in Redis goes, before a crowd that wants it
	KillRedis        Button = "kill"      // or start it again
	HangRedis        Button = "hang"      // or let it go on
	TwoMore          Button = "processes" // two more processes
)
