package engine

// ClusterOptions make the engine a node of a cluster.
type ClusterOptions struct{}

// wrongNode returns the error for a command whose keys another node of the cluster holds, or which lie in several slots; empty if all is well.
func (e *Engine) wrongNode(s *Session, cmd *Command, args [][]byte) string { return "" }
