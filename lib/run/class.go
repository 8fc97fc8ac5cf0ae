package run

// Class is how people count runs: several states together. Whatever shows counts by class goes by this, the console too.
type Class uint8

// The classes, in the order in which they are shown.
const (
	ClassSucceeded Class = iota
	ClassFailed          // somebody may have to look after it
	ClassSkipped         // it was not to run, or not to its end
	ClassOpen            // it has not ended
)

// Classes lists them.
func Classes() []Class { return []Class{ClassSucceeded, ClassFailed, ClassSkipped, ClassOpen} }

func (c Class) String() string { return [...]string{"succeeded", "failed", "skipped", "open"}[c] }

// Class is the one that a state is counted in.
func (s State) Class() Class {
	switch s {
	case Succeeded:
		return ClassSucceeded
	case Failed, Dead, Unknown:
		return ClassFailed
	case Skipped, Cancelled:
		return ClassSkipped
	}
	return ClassOpen
}

// States are those of a class, in the order of States.
func (c Class) States() (states []State) {
	for _, s := range States() {
		if s.Class() == c {
			states = append(states, s)
		}
	}
	return states
}
