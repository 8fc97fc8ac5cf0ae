/* A scope of a workflow's run that is stopped: A in it, and B behind that, whatever A comes to. Behind the scope stands N, if it has succeeded, and H, if its time was over. Each d_step
   is one operation of the store or the queue; between two of them a hand may sleep, or die. B is a task, or is skipped by who asks it, or waits. docs/model.md reads it aloud. */
hidden byte planted, kind;                      /* of B: TASK, ASKED or WAIT */
byte faults;                                    /* how often a hand dies */
c_code {
	static void bound(const char *name, unsigned char *v) { if (getenv(name)) { *v = atoi(getenv(name)); } }
}
#define bounds c_code { bound("PLANTED", &planted); bound("KIND", &kind); bound("FAULTS", &now.faults); }
/* Each number of PLANTED takes one rule out; 0 is the protocol as it is. */
#define nohead     (planted == 1)  /* a start does not read the run */
#define wordlast   (planted == 2)  /* the steps are ended before the word is written */
#define noput      (planted == 3)  /* what would be released is not put as cancelled: the scope has ended when nothing in it is open */
#define believes   (planted == 4)  /* who sees a step that was cancelled, and has read no word, goes on by that */
#define always     (planted == 5)  /* the word counts, though all had ended by itself */
#define leaves     (planted == 6)  /* who has written the word does not read the steps again */
#define over       (planted == 7)  /* a step is put whatever stands there */
#define noversion  (planted == 8)  /* a start is written whatever the step has become */

#define TASK 0
#define ASKED 1
#define WAIT 2

#define NONE 0
#define QUEUED 1
#define WAITS 2
#define RUNNING 3
#define SUCCEEDED 4
#define SKIPPED 5
#define FAILED 6
#define CANCELLED 7

#define A 0
#define B 1
#define N 2
#define H 3
#define RUN 4                                   /* the message of the run */
#define TICK 5                                  /* a check when the time of the scope is over */

byte st[4], put; bit msg[6], word, late, asked[2], fin; /* the steps, which were put, the messages; whether the word was written, the time is over, a step was told to stop, the run has ended */
byte after;                                     /* the steps that were put when the word was written already */
bit swept;                                      /* somebody has ended all that was open behind the word */
hidden byte W1_released_once, W2_one_end, W3_nobody_stranded, W4_ends_last, W4_by_its_steps, W5_starts_no_more, W5_word_first;
#define isopen(x) ((x) >= QUEUED && (x) <= RUNNING)
#define ended(x)  ((x) >= SUCCEEDED)
#define inscope(r) ((r) < N)
#define dies :: d_step { faults -> faults-- }; goto dead

inline puts(r, as) {
  W1_released_once = !(put >> (r) & 1); assert(W1_released_once);
  W4_ends_last = !fin; assert(W4_ends_last);
  put = put | 1 << (r); st[r] = as; after = after | word << (r);
  W2_one_end = !(put >> N & 1 && put >> H & 1); assert(W2_one_end);
  if :: (as) == QUEUED -> msg[r] = 1 :: else fi
}

proctype hand() {
  byte r, rs[4], what; bit ws, to, cut, done;
take:
  skip; d_step { r = 0; rs[0] = 0; rs[1] = 0; rs[2] = 0; rs[3] = 0; what = 0; ws = 0; to = 0; cut = 0; done = 0 }
end:
  if
  :: d_step { msg[A] -> msg[A] = 0; r = A }
  :: d_step { msg[B] -> msg[B] = 0; r = B }
  :: d_step { msg[N] -> msg[N] = 0; r = N }
  :: d_step { msg[H] -> msg[H] = 0; r = H }
  :: d_step { msg[RUN] -> msg[RUN] = 0; r = RUN }; goto follow
  :: d_step { msg[TICK] -> msg[TICK] = 0; r = TICK }; goto follow
  fi;

  /* A start reads the step, and then the run. */
start:
  skip; d_step { rs[0] = st[r] }
  if
  :: rs[0] != QUEUED -> goto follow
  :: else
  fi;
  skip; d_step { ws = word && inscope(r) && !nohead }
  if
  :: ws -> goto follow
  :: else
  fi;
  if
  :: d_step { st[r] == QUEUED || noversion && st[r] != RUNNING -> W5_starts_no_more = !(inscope(r) && (swept || after >> r & 1)); assert(W5_starts_no_more); st[r] = RUNNING; rs[0] = 0 }
  :: d_step { st[r] != QUEUED && !(noversion && st[r] != RUNNING) -> rs[0] = 0 }; goto start
  fi;
  if
  :: d_step { st[r] == RUNNING -> st[r] = SUCCEEDED }
  :: d_step { st[r] == RUNNING && inscope(r) -> st[r] = (asked[r] -> CANCELLED : FAILED) }
  :: d_step { st[r] != RUNNING }
  fi;
  if :: goto follow dies fi;

  /* What follows from the steps as they stand. */
follow:
  skip; d_step { ws = word; to = late; done = fin; cut = 0; what = 0 }
  if :: done -> goto take :: else fi;
rows:
  skip; d_step { rs[A] = st[A] }; d_step { rs[B] = st[B] }; d_step { rs[N] = st[N] }; d_step { rs[H] = st[H] };
  if
  :: !ws && (rs[A] == CANCELLED || rs[B] == CANCELLED) && !believes -> goto follow
  :: !ws && to && !(ended(rs[A]) && ended(rs[B])) ->
     if
     :: wordlast -> goto stop
     :: d_step { !wordlast && !fin -> word = 1; ws = 1 }; if :: leaves -> goto take :: !leaves -> goto rows dies fi
     :: d_step { fin }; goto take
     fi
  :: ws -> goto stop
  :: else
  fi;
  goto decide;
  /* Ends what is open in the scope, and puts what would be released. */
stop:
  skip; d_step { if :: isopen(rs[A]) && (st[A] == QUEUED || st[A] == WAITS) -> W5_word_first = word; assert(W5_word_first); st[A] = CANCELLED :: isopen(rs[A]) && st[A] == RUNNING -> asked[A] = 1 :: else fi; rs[A] = st[A] }
  if :: skip dies fi;
  d_step { if :: isopen(rs[B]) && (st[B] == QUEUED || st[B] == WAITS) -> W5_word_first = word; assert(W5_word_first); st[B] = CANCELLED :: isopen(rs[B]) && st[B] == RUNNING -> asked[B] = 1 :: else fi; rs[B] = (rs[B] == NONE -> NONE : st[B]) }
  if :: skip dies fi;
  if
  :: wordlast && !ws -> d_step { word = 1; ws = 1 }
  :: else
  fi;
  if
  :: ended(rs[A]) && rs[B] == NONE && !noput ->
     if
     :: d_step { st[B] == NONE || over -> puts(B, CANCELLED); rs[B] = CANCELLED; swept = 1 }
     :: d_step { st[B] != NONE && !over }; goto follow
     fi;
     if :: skip dies fi
  :: else -> d_step { swept = (swept || !isopen(st[A]) && !isopen(st[B]) && st[A] != NONE && st[B] != NONE) }
  fi;
decide:
  if
  :: rs[A] == NONE && !ws ->
     d_step { if :: st[A] == NONE || over -> puts(A, QUEUED) :: else fi }; if :: goto take dies fi
  :: rs[A] == NONE && ws ->
     d_step { if :: st[A] == NONE -> puts(A, CANCELLED) :: else fi }; goto follow
  :: ended(rs[A]) && rs[B] == NONE && !ws ->
     if
     :: d_step { st[B] == NONE || over -> if :: kind == TASK -> puts(B, QUEUED) :: kind == ASKED -> puts(B, SKIPPED) :: kind == WAIT -> puts(B, WAITS) fi; rs[B] = st[B] }
     :: d_step { st[B] != NONE && !over }; goto follow
     fi;
     if :: skip dies fi
  :: else
  fi;
  cut = (rs[A] == CANCELLED || rs[B] == CANCELLED || always || noput && rs[B] == NONE);
  if
  :: ended(rs[A]) && (ended(rs[B]) || noput && ws && rs[B] == NONE) -> /* the scope has ended: N, H, or nobody follows */
     what = (ws && cut -> H : (rs[A] == SUCCEEDED && (rs[B] == SUCCEEDED || rs[B] == SKIPPED) -> N : RUN))
  :: else -> goto take
  fi;
  if
  :: what != RUN ->
     if
     :: d_step { rs[what] == NONE && (st[what] == NONE || over) -> puts(what, QUEUED) }
     :: d_step { rs[what] == NONE && st[what] != NONE && !over }; goto follow
     :: d_step { rs[what] != NONE }
     fi;
     if :: skip dies fi
  :: else
  fi;
  d_step { if
    :: what == RUN || ended(rs[what]) ->
       W4_by_its_steps = !(isopen(st[A]) || isopen(st[B]) || isopen(st[N]) || isopen(st[H])); assert(W4_by_its_steps); fin = 1
    :: else
    fi }
  goto take;
dead:
  skip; d_step { msg[r] = 1 }                   /* its message comes back, and a check comes again */
  goto take
}

proctype clock() {
  d_step { late = 1; msg[TICK] = 1 }
}

proctype mender() {
  timeout -> d_step { W3_nobody_stranded = fin; assert(W3_nobody_stranded) }
}

init { bounds; atomic { msg[RUN] = 1; run hand(); run hand(); run clock(); run mender() } }
