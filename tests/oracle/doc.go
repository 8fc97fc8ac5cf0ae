// Package oracle judges whether Belfry kept its promises, P1 to P12 (`make promises` prints them), G1 and G4 of gates and W1 to W5, W8, W13 and W14 of workflows, from what was seen of it: each change of
// an item in the store, each call of a target, each request of a client with its answer. It knows nothing of how these came about:
// a simulation, a scripted test and the log of real processes are judged by one piece of code.
//
// It has no goroutines and no clock. Whoever feeds it does so in the order in which things happened, one at a time, and says when by
// the true time, which no host's clock needs to show.
//
// # When it looks
//
//   - Stored, at each change: versions rise, a run goes along an edge of its graph and changes only what that edge may, nothing starts
//     early or under an ended definition, cursors neither fall nor pass over what is owed. It costs the same however much is stored.
//     A step of a workflow is put once, when its needs let it run by lib/flow/reference, and its run ends as that says of its steps.
//   - Called and Returned: who calls holds a fence of its own, once.
//   - Answered: what a client was told was so at an instant between its question and the answer.
//   - Look, now and then, over all that is stored: who waits has a wake-up, what is listed is there.
//   - End, after the calm: each fire that was in force has its run or a record of why not, and nothing else ran; each request that was
//     accepted has its run; all has ended.
//
// # What it does not do
//
// It does not drive anything, and it holds nothing against what is merely slow: bounds on lateness are their own test's. It has no word for
// P10: what a queue did wrong shows as P2, P3, P4 or P6. It sees little of P11: memory and the cost of a tick are measured elsewhere.
package oracle
