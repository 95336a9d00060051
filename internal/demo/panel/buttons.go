package panel

// Button is a button of the dashboard.
type Button string

const (
	ExpireEverything Button = "expire"    // every product and page that is kept ends now
	FillAtOnce       Button = "fill"      // every product is stored anew in the same moment
	EmptyRedis       Button = "empty"     // all that is in Redis goes, before a crowd that wants it
	KillRedis        Button = "kill"      // or start it again
	HangRedis        Button = "hang"      // or let it go on
	SlowDatabase     Button = "slow"      // queries take four times as long, for ten seconds
	TwoMore          Button = "processes" // two more processes
)

// RedisIsBack is Press's text when it ends the effect of KillRedis or HangRedis.
const RedisIsBack = "Redis is back"
