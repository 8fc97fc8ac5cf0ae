package gate

// Restored is a job's own gate in a copy of the past in which no run goes on: the entries of those that were let in under strict, and no line. Each of their runs has ended there, well as
// it did or as unknown, and by that holds up those that come or not. False where none is left, as at a gate that jobs name.
func (g Gate) Restored() (Gate, bool) {
	if _, own := OwnOf(g.Name); !own {
		return g, false
	}
	var strict []Entry
	for _, e := range g.Entries {
		if e.Strict != 0 {
			strict = append(strict, e)
		}
	}
	g.Entries, g.Waiting, g.Front, g.Asks = strict, 0, 0, false
	return g, len(strict) > 0
}
