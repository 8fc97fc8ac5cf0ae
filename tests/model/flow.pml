/* The run of a workflow: release, start, cancel, the end of its time, and the check as the mender of what a crash has left. docs/model.md reads it aloud, and says which code each
   transition is. Each d_step is one operation of the store or the queue; between two of them a hand may sleep, or die. A query reads one row after the other. What a hand has read
   says no more than what stood: a write on the condition of it fails. */
#define N 5                                     /* steps */
#define H 2                                     /* hands: workers, checks, and people who cancel */
hidden byte planted, steps = 3, shape[N], by[N], only = 99, once, most = 2; /* most: how many steps are read one by one */
hidden byte catch[N], stops, real;              /* who handles the failure of a step, 0 for nobody; whether a failure that nobody handles stops the run; whether the truth is asked for */
byte cancels, faults, agains, takeovers, checks, times; /* how often a run is cancelled, a hand dies, an attempt is tried again, a living one's lease runs out, a check comes, time is over */
hidden byte verdict[960];                       /* what each rule says, by the code: of outcomes that were seen, and of so many open ones */
c_code {
	static void bound(const char *name, unsigned char *v) { if (getenv(name)) { *v = atoi(getenv(name)); } }
	static void rules(void) {
		FILE *f = fopen(getenv("RULES") ? getenv("RULES") : "", "r"); int n = 0, v;
		while (f && n < 960 && fscanf(f, "%d", &v) == 1) { verdict[n++] = v; }
		if (n < 960) { printf("RULES names no table of the rules\n"); exit(1); }
	}
}
#define bounds c_code { rules(); \
	bound("PLANTED", &planted); bound("STEPS", &steps); bound("ONLY", &only); bound("ONCE", &once); \
	bound("NEEDS1", &shape[1]); bound("NEEDS2", &shape[2]); bound("NEEDS3", &shape[3]); bound("NEEDS4", &shape[4]); bound("RULE4", &by[4]); bound("LOOKS", &most); \
	bound("CANCELS", &now.cancels); bound("FAULTS", &now.faults); bound("AGAINS", &now.agains); bound("TAKEOVERS", &now.takeovers); bound("CHECKS", &now.checks); \
	bound("TIMES", &now.times); bound("CATCH0", &catch[0]); bound("CATCH1", &catch[1]); bound("STOPS", &stops); }
/* Each number of PLANTED takes one rule out; 0 is the protocol as it is. */
#define over       (planted == 1)  /* a step is put whatever stands there */
#define nohead     (planted == 2)  /* a start does not read the run */
#define wordlast   (planted == 3)  /* a cancel ends the steps before its word is written */
#define sendfirst  (planted == 4)  /* a step is sent before it is put */
#define nofollow   (planted == 5)  /* whoever ends a step looks after nobody */
#define deletes    (planted == 6)  /* the message of a step goes before what follows from its end */
#define nosend     (planted == 7)  /* a message that comes again sends only what it has put */
#define anyend     (planted == 8)  /* the end of the run is written whatever stands there */
#define weak       (planted == 9)  /* steps are read as they may have stood before */
#define hasty      (planted == 10) /* a rule decides by those that have ended */
#define nostart    (planted == 11) /* a start is written whatever the step has become */
#define nofence    (planted == 12) /* an end is written whoever holds the step */
#define endsopen   (planted == 13) /* the run ends when there is nothing to release */
#define nocheck    (planted == 14) /* the check of a run does not look at what follows */
#define answers    (planted == 15) /* a cancel is answered before the steps are ended */
#define twice      (planted == 16) /* a step that may start only once is tried again when its lease has run out */
#define weakhead   (planted == 17) /* a start reads the run as it may have stood before */
#define trusts     (planted == 18) /* whoever finds a step put by another leaves the rest to that one */
#define nolast     (planted == 19) /* whoever has released nothing does not ask who is open */
#define unsure     (planted == 20) /* a step counts as open when one that it waits for is */
#define believes   (planted == 21) /* whoever is read counts as open */
#define eager      (planted == 22) /* a step that handles failures runs once one is caught, whoever else leads to it */
#define tells      (planted == 23) /* what needs a step whose failure was caught sees the failure */
#define counts     (planted == 24) /* a failure that was caught fails the run */
#define alike      (planted == 25) /* a step that handles failures runs when what leads to it has ended, however */
#define nostop     (planted == 26) /* a failure that nobody handles stops nothing */
#define leaves     (planted == 27) /* a run that a failure stops goes on with what it has read */
#define forgets    (planted == 28) /* a run that a failure stops ends as if people had asked for it */
#define stopsall   (planted == 29) /* a failure that was caught stops the run */

#define NONE 0
#define QUEUED 1                                /* never started */
#define AGAIN 2                                 /* queued or retrying after an attempt */
#define RUNNING 3
#define SUCCEEDED 4
#define FAILED 5                                /* or dead, or unknown */
#define CANCELLED 6
#define OPENED 7                                /* of the run: running without a lease */
#define STOPPING 8                              /* and cancelled, or over its time */

byte st[N], holder[N], msgs[N + 1];             /* a step, the hand whose attempt runs, and messages; the last is the run's */
byte head = QUEUED; bit late, overdue, stopped, answered, died, lost, fails; /* the run; whether its time is over, and it was told so; whether it was stopped, a cancel answered; whether a hand has died, and its message was lost; whether a failure has stopped the run */
byte asked, tried, put;                         /* sets of steps: asked to stop, started once, put once */
byte needs[N], rule[N];                         /* the graph: a set of parents for each step, and its rule */
byte was[N], headwas;                           /* as it stood before its last write, where reads are weak */
bit busy[H], hstale[H]; byte rstale[H];                  /* whether a hand has something to see to; whether the run has changed since it has read it, and which of the steps */
hidden byte i, k, s, n, v, row[N], out[N], rel, fin, bad, halt, lead, into, pend, aft, bef, op, rch, ask; /* of one operation; none ends with a loop */
hidden byte W2_ends_as_its_steps, W2_a_failure_stops, W4_ends_for_its_reason;
hidden byte W1_released_once, W1_by_its_rule, W4_ends_once, W4_last_step_has_ended, W4_starts_no_more, W5_starts_no_more, W13_starts_once, W2_an_end_stays, W3_nobody_stranded, W3_at_once, W3_the_check_mends;

#define ended(x)     ((x) >= SUCCEEDED && (x) <= CANCELLED)
#define waits(x)     ((x) == QUEUED || (x) == AGAIN)
#define isopen(x)    ((x) >= QUEUED && (x) <= RUNNING)
#define underway(x)  ((x) == OPENED || (x) == STOPPING)
#define stale(r)     (rstale[h] >> (r) & 1)
#define all(v, act)  for (v : 0 .. N - 1) { if :: v < steps -> act :: else fi }
inline wrotehead()   { for (i : 0 .. H - 1) { hstale[i] = 1 }; hstale[h] = 0 }
inline wrote(r)      { for (i : 0 .. H - 1) { rstale[i] = rstale[i] | 1 << (r) }; rstale[h] = rstale[h] & ~(1 << (r)) }
inline keep(r)       { if :: weak -> was[r] = st[r] :: else fi }
inline keephead()    { if :: weakhead -> headwas = head :: else fi }

#define caught(x)    (out[x] == 2 && row[x] == FAILED && catch[x]) /* its failure; the end of one that was cancelled is none */
/* What follows from the rows: who is to be released, whether all is over, and how it ended. Outcomes are sets: succeeded, failed, upstream failed, skipped; none while open.
   A failure that is caught is a skip to those that need the step, and lets who handles it run, once all that lead there have ended. */
inline plan() {
  rel = 0; fin = 1; bad = 0; halt = 0;
  all(i,
    v = 0; s = 0; n = 0; lead = 0; into = 0; pend = 0;
    all(k, if
      :: needs[i] >> k & 1 && catch[k] == i && i -> lead = 1; if :: !out[k] -> pend = 1 :: caught(k) || alike && !real && out[k] -> into = 1 :: else fi
      :: needs[i] >> k & 1 && !(catch[k] == i && i) -> if :: caught(k) && !(tells && !real) -> s = s | 8 :: out[k] && !(caught(k) && !(tells && !real)) -> s = s | out[k] :: else -> n++ fi
      :: else fi);
    if :: hasty && s -> n = 0 :: else fi;
    if :: s || n -> v = verdict[(rule[i] * 16 + s) * 5 + n] :: else -> v = 1 fi;
    if :: lead && v == 1 && pend && !(eager && !real && into) -> v = 0 :: lead && v == 1 && !pend && !into -> v = 2 :: else fi;
    if
    :: row[i] == SUCCEEDED -> out[i] = 1
    :: row[i] == FAILED || row[i] == CANCELLED -> out[i] = 2
    :: isopen(row[i]) || row[i] == NONE && v == 0 -> out[i] = 0
    :: row[i] == NONE && v == 1 -> out[i] = 0; rel = rel | 1 << i
    :: row[i] == NONE && v == 2 -> out[i] = 8
    :: row[i] == NONE && v == 3 -> out[i] = 4
    fi;
    if :: out[i] == 0 -> fin = 0 :: out[i] & 6 && !(caught(i) && !(counts && !real)) -> bad = 1 :: else fi;
    if :: out[i] == 2 && !(caught(i) && !(stopsall && !real)) -> halt = stops :: else fi);
  i = 0; k = 0; v = 0; s = 0; n = 0; lead = 0; into = 0; pend = 0
}
inline known()       { all(i, row[i] = rs[i]; out[i] = 0); plan() }
inline truth()       { all(i, row[i] = st[i]; out[i] = 0); real = 1; plan(); real = 0 }
inline forget()      { for (i : 0 .. N - 1) { row[i] = 0; out[i] = 0 }; rel = 0; fin = 0; bad = 0; halt = 0; aft = 0; bef = 0; op = 0; rch = 0; ask = 0 }

/* A start is the only one of a step that may start once, by the rule as all stands, of a run that is under way and of which no cancel was answered. */
inline starts(r) {
  W4_starts_no_more = underway(head); assert(W4_starts_no_more);
  W5_starts_no_more = !answered; assert(W5_starts_no_more);
  W13_starts_once = !(once >> r & 1 && tried >> r & 1); assert(W13_starts_once);
  all(i, row[i] = (i == r -> NONE : st[i]); out[i] = 0); real = 1; plan(); real = 0;
  W1_by_its_rule = rel >> r & 1; assert(W1_by_its_rule); forget();
  keep(r); st[r] = RUNNING; holder[r] = h + 1; tried = tried | 1 << r; wrote(r)
}
/* The run ends. Where nobody has stopped it nothing is left that could follow; else nothing runs. */
inline ends(as) {
  W4_ends_once = underway(head); assert(W4_ends_once);
  truth(); W4_last_step_has_ended = (fin || head == STOPPING); assert(W4_last_step_has_ended);
  W2_ends_as_its_steps = (head == STOPPING || ((as) == FAILED) == bad); assert(W2_ends_as_its_steps);
  W4_ends_for_its_reason = (!fails || (as) == FAILED); assert(W4_ends_for_its_reason);
  all(i, W4_last_step_has_ended = (st[i] != RUNNING); assert(W4_last_step_has_ended)); forget();
  stopped = (head == STOPPING); keephead(); head = as; wrotehead()
}
/* The first of a set behind r is read next, or else the first of all. */
inline asks(among) {
  if
  :: ask > N -> ask = N; all(k, if :: (among) >> k & 1 && (ask == N || ask < r && k > r) -> ask = k :: else fi)
  :: else
  fi
}
/* What follows from the end of r for whoever knows of few others: known are those in kn, behind r nothing is taken to stand, and elsewhere a step is taken to be open. For each
   step that waits and that the end counts for, and for the run, one must be sure to be open; else ask says whom to read, or N that all are to be read. */
inline walks() {
  aft = 0; bef = 0; op = 0; rch = 0; ask = N + 1; n = 1 << r;
  all(i, if :: needs[i] & (aft | 1 << r) -> aft = aft | 1 << i :: else fi);
  all(i, if :: (n | bef) >> (steps - 1 - i) & 1 -> bef = bef | needs[steps - 1 - i] :: else fi);
  all(i, out[i] = 0; if :: kn >> i & 1 -> row[i] = rs[i] :: else -> if :: aft >> i & 1 -> row[i] = NONE :: else -> row[i] = RUNNING fi fi);
  plan();
  all(i, if
    :: believes && kn >> i & 1 && i != r -> op = op | 1 << i
    :: !(believes && kn >> i & 1 && i != r) && out[i] == 0 && (kn >> i & 1 && row[i] != NONE || rel >> i & 1) -> op = op | 1 << i
    :: out[i] == 0 && !(kn >> i & 1 && (row[i] != NONE || believes) || rel >> i & 1) && aft >> i & 1 ->
       n = 1; v = 0; all(k, if :: needs[i] >> k & 1 && !out[k] -> if :: op >> k & 1 -> v = 1 :: else -> n = 0 fi :: else fi);
       if :: n || unsure && v -> op = op | 1 << i :: else fi
    :: else fi);
  s = 1 << r;
  all(i, if :: needs[i] & s && out[i] && !(kn >> i & 1) -> s = s | 1 << i :: needs[i] & s && !out[i] -> rch = rch | 1 << i :: else fi);
  all(i, if :: rch >> i & 1 && !(op >> i & 1) && !(needs[i] & op) -> asks(needs[i] & ~kn & ~aft) :: else fi);
  if :: !op && !nolast -> v = (1 << steps) - 1; asks(v & ~kn & ~aft & ~bef) :: else fi;
  i = 0; k = 0; n = 0; v = 0; s = 0
}
/* When nobody has anything left to see to, all that follows has been put, and the run has ended if it is over. */
inline done() {
  busy[h] = 0; k = died || late || busy[0] || busy[1];
  if
  :: !k && head == OPENED -> truth(); W2_a_failure_stops = !halt; assert(W2_a_failure_stops); W3_at_once = (!rel && !fin); assert(W3_at_once); forget()
  :: else
  fi; k = 0
}
/* A hand may die after anything that it did. Its message comes back, or is lost. */
#define dies  :: d_step { faults -> faults-- }; goto dead

#define DROP 0                                  /* what is next after a look at the run */
#define STOP 1
#define ANSWER 2
#define CANCEL 3
#define RUN N                                   /* the run's own message */
#define PEOPLE (N + 1)                          /* none at all */
#define ENDING 128                              /* the run is over, and one more: as failed */
#define HALT 64                                 /* a failure stops the run */

#define mine         (holder[r] == h + 1 || nofence)
#define taken(m)     (msgs[m] && !(st[m] == RUNNING && holder[m] <= H && !takeovers))

proctype hand(byte h) {
  byte r, hs, rs[N], j, to, next, putnow, kn, looks; bit again, walked, met;
take:
  skip; d_step { r = 0; hs = 0; rs[0] = 0; rs[1] = 0; rs[2] = 0; rs[3] = 0; rs[4] = 0; kn = 0; looks = 0; walked = 0; met = 0; j = 0; to = 0; next = DROP; putnow = 0; again = 0; hstale[h] = 0; rstale[h] = 0; done() }
end:
  if
  :: d_step { taken(0) -> msgs[0]--; r = 0 }; goto step
  :: d_step { taken(1) -> msgs[1]--; r = 1 }; goto step
  :: d_step { taken(2) -> msgs[2]--; r = 2 }; goto step
  :: d_step { taken(3) -> msgs[3]--; r = 3 }; goto step
  :: d_step { taken(4) -> msgs[4]--; r = 4 }; goto step
  :: d_step { msgs[RUN] -> msgs[RUN]--; r = RUN }
  :: d_step { cancels && !ended(head) -> cancels--; r = PEOPLE }; goto cancel
  :: d_step { checks && underway(head) -> checks--; r = PEOPLE }; goto check
  fi;

  /* The run's message: opens the run, or finds it opened. */
open:
  skip; d_step { hs = head; hstale[h] = 0 }
  if
  :: hs == QUEUED ->
     if
     :: d_step { !hstale[h] -> keephead(); head = OPENED; busy[h] = 1; wrotehead() }
     :: d_step { hstale[h] }; goto open
     fi
  :: underway(hs) -> again = 1
  :: else -> goto take
  fi;
  if :: goto follow dies fi;

  /* A step's message. */
step:
  skip; d_step { rs[r] = st[r]; rstale[h] = rstale[h] & ~(1 << r) }
  if
  :: ended(rs[r]) -> again = 1; goto follow
  :: rs[r] == NONE -> goto take
  :: rs[r] == RUNNING ->                         /* its lease has run out */
     if
     :: d_step { !stale(r) && (holder[r] > H || takeovers) -> if :: holder[r] <= H -> takeovers-- :: else fi;
          keep(r); st[r] = (once >> r & 1 && !twice -> FAILED : (asked >> r & 1 -> CANCELLED : AGAIN)); holder[r] = 0; wrote(r) }
        goto step
     :: d_step { stale(r) }; goto step
     :: d_step { !stale(r) && holder[r] <= H && !takeovers -> msgs[r]++ }; goto take
     fi
  :: waits(rs[r]) -> skip
  fi;
  if
  :: nohead -> skip
  :: else ->
     if
     :: d_step { hs = head; hstale[h] = 0; to = late }
     :: d_step { weakhead -> hs = headwas; to = late }
     fi;
     if
     :: hs == OPENED && !to -> skip
     :: underway(hs) && (hs == STOPPING || to) -> next = STOP; goto follow
     :: else -> goto stop
     fi
  fi;
  if
  :: d_step { !stale(r) || nostart && st[r] != RUNNING -> starts(r) }
  :: d_step { stale(r) && !(nostart && st[r] != RUNNING) }; goto step
  fi;
  if
  :: d_step { mine -> keep(r); W2_an_end_stays = (st[r] == RUNNING); assert(W2_an_end_stays); st[r] = SUCCEEDED; rs[r] = st[r]; kn = 1 << r; busy[h] = 1; holder[r] = 0; wrote(r) }
  :: d_step { mine -> keep(r); W2_an_end_stays = (st[r] == RUNNING); assert(W2_an_end_stays); st[r] = (asked >> r & 1 -> CANCELLED : FAILED); rs[r] = st[r]; kn = 1 << r; busy[h] = 1; holder[r] = 0; wrote(r) }
  :: d_step { mine && agains && st[r] == RUNNING && !(once >> r & 1) -> agains--; keep(r); st[r] = (asked >> r & 1 -> CANCELLED : AGAIN); rs[r] = st[r]; kn = 1 << r; busy[h] = 1; holder[r] = 0; wrote(r) }
     if
     :: rs[r] == AGAIN -> d_step { msgs[r]++ }; goto take
     :: else
     fi
  :: d_step { !mine }; goto take                 /* fenced */
  dies
  fi;
  if
  :: nofollow -> goto take
  :: !nofollow -> goto walk
  dies
  fi;

  /* What follows from an end, by as few others as will do. */
walk:
  skip; d_step { hs = head; hstale[h] = 0; to = late; looks = most; }
  if
  :: !underway(hs) -> goto take
  :: hs == STOPPING || hs == OPENED && to -> goto follow
  :: else
  fi;
look:
  skip; d_step { walks(); to = rel; j = (halt && !nostop -> N : ask); forget() }
  if
  :: j > N -> j = 0; walked = 1; goto release
  :: j < N && looks ->
     if
     :: d_step { rs[j] = st[j]; kn = kn | 1 << j; looks--; j = 0 }
     :: d_step { weak -> rs[j] = was[j]; kn = kn | 1 << j; looks--; j = 0 }
     fi;
     goto look
  :: else -> goto follow
  fi;

  /* A cancel: its word, then the steps, then the answer. */
cancel:
  if
  :: wordlast && next != CANCEL -> next = CANCEL; hs = STOPPING; goto rows
  :: else
  fi;
  if
  :: d_step { head == QUEUED -> head = CANCELLED; wrotehead(); answered = 1 }; goto take
  :: d_step { underway(head) -> keephead(); head = STOPPING; wrotehead(); answered = answered | answers }
  :: d_step { ended(head) }; goto take
  fi;
  next = ANSWER;
  if :: wordlast -> goto after :: else fi;
  if :: goto follow dies fi;

  /* A check sends what is open, and looks at what follows. */
check:
  do
  :: j < steps -> d_step { if :: isopen(st[j]) && msgs[j] < 2 -> msgs[j]++ :: else fi; j++ }
  :: else -> break
  od;

  /* What follows from the steps as they stand. */
follow:
  skip; d_step { hs = head; hstale[h] = 0; to = late; j = 0; putnow = 0; looks = 0 }
  if
  :: !underway(hs) -> goto after
  :: hs == OPENED && to ->
     if
     :: d_step { !hstale[h] -> keephead(); head = STOPPING; overdue = 1; hs = STOPPING; wrotehead() }
     :: d_step { hstale[h] }; goto follow
     fi
  :: else
  fi;
rows:
  do
  :: d_step { j < steps -> rs[j] = st[j]; rstale[h] = rstale[h] & ~(1 << j); j++ }
  :: d_step { weak && j < steps -> rs[j] = was[j]; j++ }
  :: else -> break
  od;
  if
  :: hs == OPENED -> goto decide
  :: else -> j = 0
  fi;
  do
  :: j < steps && isopen(rs[j]) ->
     d_step { if
       :: waits(st[j]) -> keep(j); st[j] = CANCELLED; wrote(j)
       :: st[j] == RUNNING -> asked = asked | 1 << j; wrote(j)
       :: else
       fi; rs[j] = st[j]; j++ }
     if :: skip dies fi
  :: j < steps && !isopen(rs[j]) -> j++
  :: j == steps -> break
  od;
  if
  :: next == CANCEL -> goto cancel
  :: isopen(rs[0]) || isopen(rs[1]) || isopen(rs[2]) || isopen(rs[3]) || isopen(rs[4]) -> goto after
  :: else ->
     if
     :: d_step { !hstale[h] || anyend -> ends((overdue -> FAILED : CANCELLED)) }; goto after
     :: d_step { hstale[h] && !anyend }; goto follow
     fi
  fi;
decide:
  skip; d_step { known(); to = rel; j = 0; putnow = 0;
    if :: fin || endsopen && !rel -> to = ENDING + bad :: !(fin || endsopen && !rel) && halt && !nostop -> to = HALT :: else fi; forget() }
  if
  :: to == HALT ->                               /* the word, and then all steps as they stand behind it */
     if
     :: d_step { !hstale[h] -> truth(); W2_a_failure_stops = halt; assert(W2_a_failure_stops); forget(); keephead(); head = STOPPING; overdue = !forgets; fails = 1; hs = STOPPING; wrotehead(); to = 0 }
        if :: leaves -> goto after :: else goto rows fi
     :: d_step { hstale[h] }; goto follow
     fi
  :: to >= ENDING ->
     if
     :: d_step { !hstale[h] || anyend -> if :: to > ENDING -> to = FAILED :: else -> to = SUCCEEDED fi; ends(to) }; goto after
     :: d_step { hstale[h] && !anyend }; goto follow
     fi
  :: else
  fi;
  if :: sendfirst -> putnow = to; goto send :: else fi;
release:
  do
  :: j < steps && to >> j & 1 ->
     d_step { if
       :: st[j] == NONE || over ->
          W1_released_once = !(put >> j & 1); assert(W1_released_once);
          keep(j); st[j] = QUEUED; put = put | 1 << j; putnow = putnow | 1 << j; wrote(j)
       :: else -> met = walked && !trusts
       fi; j++ }
     if :: skip dies fi
  :: j < steps && !(to >> j & 1) -> j++
  :: j == steps -> break
  od;
  if :: sendfirst -> goto after :: else fi;
  if
  :: again && !nosend -> d_step { all(i, if :: rs[i] == QUEUED -> putnow = putnow | 1 << i :: else fi); i = 0 }
  :: else
  fi;
send:
  j = 0;
  do
  :: j < steps && putnow >> j & 1 -> d_step { if :: msgs[j] < 3 -> msgs[j]++ :: else fi; j++ }; if :: skip dies fi
  :: j < steps && !(putnow >> j & 1) -> j++
  :: j == steps -> break
  od;
  if :: sendfirst -> j = 0; goto release :: else fi;
after:
  if
  :: met -> met = 0; walked = 0; goto follow
  :: next == STOP -> goto stop
  :: next == ANSWER -> answered = 1; goto take
  :: else -> goto take
  fi;

  /* A step of a run that starts nothing any more ends. */
stop:
  skip; d_step { if :: waits(st[r]) -> keep(r); st[r] = CANCELLED; wrote(r) :: else fi }
  goto take;
dead:
  /* Its attempt has nobody any more. Its message comes back, or is lost; that of a cancel or a check is none. */
  skip; d_step { died = 1; if :: r < N -> if :: holder[r] == h + 1 -> holder[r] = H + 1 :: else fi :: else fi }
  if
  :: r > N || deletes && kn -> skip
  :: else -> if :: d_step { if :: msgs[r] < 3 -> msgs[r]++ :: else fi } :: lost = 1 fi
  fi;
  goto take
}

proctype world() {
end:
  do
  :: d_step { times && head == OPENED -> times--; late = 1 }
  od
}

/* Open when nothing happens any more. Who puts a step of a run that was stopped meanwhile, and dies before it sends it, leaves it queued: nothing sees to it, and it never starts. */
#define stranded(r)  (isopen(st[r]) && !(died && stopped && st[r] == QUEUED))

/* When nothing happens any more: where no message was lost, all is over. Else checks look after what is left, and all ends. */
proctype mender() {
  byte round;
  timeout -> atomic {
    W3_nobody_stranded = (lost || ended(head) && !stranded(0) && !stranded(1) && !stranded(2) && !stranded(3) && !stranded(4)); assert(W3_nobody_stranded);
    do
    :: round <= N && !ended(head) ->
       d_step { round++;
         if :: head == QUEUED -> head = OPENED :: else fi;
         all(i,
           if
           :: waits(st[i]) -> st[i] = (head == STOPPING || late -> CANCELLED : SUCCEEDED)
           :: st[i] == RUNNING -> st[i] = FAILED
           :: else
           fi);
         i = 0;
         if :: !nocheck -> truth(); if :: halt && head == OPENED -> head = STOPPING :: else fi; all(i, if :: rel >> i & 1 && head == OPENED && !late -> st[i] = QUEUED :: else fi);
            if :: fin || head == STOPPING || late -> head = (bad -> FAILED : SUCCEEDED) :: else fi; forget() :: else fi; i = 0 }
    :: else -> break
    od;
    W3_the_check_mends = ended(head); assert(W3_the_check_mends) }
}

init {
  bounds;
  atomic {
    i = 0;
    do
    :: i < steps ->
       needs[i] = shape[i];
       if :: i && i == catch[0] -> needs[i] = needs[i] | 1 :: else fi;
       if :: i && i == catch[1] -> needs[i] = needs[i] | 2 :: else fi;
       if
       :: needs[i] == 0 || only < 12 || by[i] -> rule[i] = (needs[i] -> (by[i] -> by[i] : only) : 0)
       :: else -> v = 0; do :: v < 11 -> v++ :: break od; rule[i] = v
       fi;
       i++
    :: else -> break
    od;
    i = 0; v = 0; msgs[RUN] = 1;
    run hand(0); run hand(1); run world(); run mender() }
}
