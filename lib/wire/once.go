package wire

// OnceQuestion asks what becomes of one run when something goes wrong: how often its target is called, and how often that has an effect.
type OnceQuestion struct {
	Guarantee string `json:"guarantee" enum:"at_least_once,at_most_once" doc:"that of the job"`
	Fault     string `json:"fault" enum:"none,message_twice,dies_before,dies_after,answer_lost,write_lost,zombie,zombie_first,clocks_jump" doc:"what goes wrong"`
	Guard     string `json:"guard" enum:"none,key,fence,both" doc:"what the target looks at before it does anything"`
}

// OncePlan is what became of the run. Times are seconds from when it was asked for.
type OncePlan struct {
	Question OnceQuestion `json:"config" doc:"the question, with its defaults"`
	Outcome  OnceOutcome  `json:"outcome"`
	Says     string       `json:"says" doc:"what happened and why, in words"`
	Lasts    float64      `json:"lasts" doc:"when the last thing happened"`
	Events   []OnceEvent  `json:"events" doc:"what happened, in its order"`
	Compare  []OnceRow    `json:"compare" doc:"the outcomes of all questions: each guarantee, fault and guard"`
}

// OnceOutcome counts what happened.
type OnceOutcome struct {
	State          string `json:"state" enum:"scheduled,queued,waiting,running,retrying,succeeded,failed,cancelled,skipped,dead,unknown" doc:"of the run, at the end"`
	Deliveries     int    `json:"deliveries" doc:"how often a worker took a message of the run"`
	Attempts       int    `json:"attempts" doc:"attempts that began"`
	Calls          int    `json:"calls" doc:"how often the target was called"`
	Effects        int    `json:"effects" doc:"how often the call had an effect"`
	RepeatedCalls  int    `json:"repeated_calls" doc:"calls that the target answered well and did nothing for: it had done it under their key"`
	RefusedCalls   int    `json:"refused_calls" doc:"calls that the target refused: it had seen a newer fence for the run. Each call has an effect, is repeated or is refused"`
	RefusedWorkers int    `json:"refused_workers" doc:"how often Belfry refused a worker, since the run was not its own: when it took a message, began, renewed its lease, or reported the end"`
}

// OnceRow is the outcome of one question.
type OnceRow struct {
	Question OnceQuestion `json:"config"`
	Outcome  OnceOutcome  `json:"outcome"`
}

// OnceEvent is something that happened, at one place or between two.
type OnceEvent struct {
	At       float64 `json:"at" doc:"when"`
	Event    string  `json:"event" enum:"queued,running,retrying,succeeded,failed,cancelled,dead,unknown,renewed,written_again,message_sent,message_taken,message_hidden,message_deleted,called,effect,repeated,stale,answered,answer_lost,write_lost,refused,worker_died,worker_froze,worker_woke,clock_set,timer_set" doc:"the state that the run's record is in from then on; what was done with its message; or what happened to a worker, a call or an answer"`
	From     string  `json:"from" enum:"scheduler,store,queue,worker_1,worker_2,target" doc:"where it began: who wrote, sent, called or answered. A server writes for its workers"`
	To       string  `json:"to,omitempty" enum:"scheduler,store,queue,worker_1,worker_2,target" doc:"where it went; left out where it happened at one place"`
	Attempt  int     `json:"attempt,omitempty" doc:"of the run, from 1 on; left out before the first"`
	Fence    uint64  `json:"fence,omitempty" doc:"the fencing token that was written, called with, or refused; of a message, the one that an attempt would start under; left out where there is none"`
	Key      string  `json:"idempotency_key,omitempty" doc:"that a call brings, the same at each attempt; left out where none is sent"`
	Delivery int     `json:"delivery,omitempty" doc:"of message_taken: which delivery of a message of the run it is, from 1 on"`
	Text     string  `json:"text" doc:"the same in words"`
}
