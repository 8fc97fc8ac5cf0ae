package wire

// Changes is an event of a stream of changes, as JSON. The first says whether the stream tells of all changes.
type Changes struct {
	Complete *bool    `json:"complete,omitempty" doc:"in the first event: whether this process hears of all changes. false where others write to the same store"`
	Changed  []string `json:"changed" doc:"what to ask for anew: runs, dead-letters, jobs, queues, job:NAME, run:ID; all where that is too much to name"`
}
