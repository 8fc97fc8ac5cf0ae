/* Places of missed fires that lapse in further outages, at a rate of one a second, in one shard. Each d_step is one operation of the store or the queue;
   between two of them a process may be frozen, or die with all others and the queue. docs/model.md reads it aloud. Time is in seconds. A pass comes in each,
   and a worker takes what it can before time goes on, unless BUSY says that it need not. */
#define N 4                                     /* runs, claimed with places behind a first outage */
#define END 24
#define AWAY 4                                  /* how long an outage is; longer than passes are apart and look ahead */
#define LATE 2                                  /* seconds without a pass that are no outage */
hidden byte planted, runs = 4;
byte outages = 2, busy;
c_code {
	static void bound(const char *name, unsigned char *v) { if (getenv(name)) { *v = atoi(getenv(name)); } }
}
#define bounds c_code { bound("PLANTED", &planted); bound("RUNS", &runs); bound("OUTAGES", &now.outages); bound("BUSY", &now.busy); }
/* Each number of PLANTED takes one rule out; 0 is the protocol as it is. */
#define keeps       (planted == 1)  /* a place that lapsed is as good as any */
#define unpublished (planted == 2)  /* places beyond the horizon are given by what one pass knows */
#define nolook      (planted == 3)  /* whoever asks does not look whether a pass has come by */
#define always      (planted == 4)  /* who waits for a worker is given another place, too */
#define fromclock   (planted == 5)  /* places are given from the clock on */
#define unnoted     (planted == 6)  /* a pass that comes back does not say so */
#define unseen      (planted == 7)  /* a worker that is back before the first pass does not see that nobody was there */
#define unasked     (planted == 8)  /* a pass gives another place to whoever has a timer */

byte time = 1, n, been;                         /* n: starts in this second; been: outages so far */
byte horizon = 2, passed = 1, back, given, mark = 2; /* the shard: what was published, the last pass, when passes came back, the last place, the watermark */
bit started[N], msg[N];
byte place[N], ask[N], times[N];                /* ask: when the timer wakes that asks for another place; times: how often it was given one */
bit deadpass, deadworker;
hidden byte i, k;
hidden byte P11_rate, P11_one_place, P3_once_an_outage, P2_all_start;

#define ready(r) (r < runs && msg[r] && !started[r] && place[r] <= time)
#define anyready (ready(0) || ready(1) || ready(2) || ready(3))
#define overdue  (time - passed > LATE)

proctype pass() {
  byte r, g, p, was;
top:
  skip; d_step { time < END && passed < time || deadpass -> deadpass = 0; r = 0; g = 0; p = 0; was = 0 }
  d_step { !deadpass ->
    if :: overdue && !unnoted -> back = time :: else fi;
    g = (horizon > time -> horizon : time); if :: fromclock -> g = time :: given > g && !fromclock -> g = given :: else fi;
    passed = time; horizon = time + 1 }
  do
  :: r < runs && ask[r] > mark && ask[r] <= horizon ->
     d_step { was = place[r]; p = 0; if :: !started[r] && (place[r] < back || unasked || always) -> g++; p = g :: else fi }
     if :: p > horizon && !unpublished -> if :: d_step { !deadpass -> given = p } :: deadpass -> goto top fi :: else fi;
     if
     :: d_step { !deadpass ->
          if
          :: p && !started[r] && place[r] == was ->
             place[r] = p; times[r]++;
             P3_once_an_outage = (times[r] <= been); assert(P3_once_an_outage);
             for (i : 0 .. N - 1) { if :: i < runs && i != r -> P11_one_place = (place[i] != p); assert(P11_one_place) :: else fi }; i = 0
          :: else
          fi }
     :: deadpass -> goto top
     fi;
     if :: d_step { !deadpass -> msg[r] = 1 } :: deadpass -> goto top fi;
     r++
  :: r < runs && !(ask[r] > mark && ask[r] <= horizon) -> r++
  :: r >= runs -> break
  od;
  if :: d_step { !deadpass -> mark = horizon } :: deadpass fi;
  goto top
}

#define seenback (overdue && !unseen -> time : back)
proctype worker() {
  byte r, was, wake;
top:
  skip; d_step { anyready || deadworker -> deadworker = 0; r = 0; wake = 0; was = 0 }
  if
  :: ready(0) -> r = 0
  :: ready(1) -> r = 1
  :: ready(2) -> r = 2
  :: ready(3) -> r = 3
  :: !anyready -> goto top
  fi;
  d_step { was = place[r] }
  if :: was > time -> goto top :: else fi;
  if
  :: d_step { !deadworker && (was + 1 >= time || keeps) }
  :: d_step { !deadworker && was + 1 < time && !keeps && (was < seenback || always) -> wake = (horizon > time -> horizon : time) + 1 } ;
again:
     if :: d_step { !deadworker -> ask[r] = wake } :: deadworker -> goto top fi;
     if
     :: d_step { !deadworker && horizon >= wake && !nolook -> wake = (horizon > time -> horizon : time) + 1 } ; goto again
     :: d_step { !deadworker && (horizon < wake || nolook) -> if :: place[r] == was -> msg[r] = 0 :: else fi } ; goto top
     :: deadworker -> goto top
     fi
  :: d_step { !deadworker && was + 1 < time && !keeps && was >= seenback && !always }
  :: deadworker -> goto top
  fi;
  if
  :: d_step { !deadworker -> if :: !started[r] && place[r] == was -> started[r] = 1; n++; P11_rate = (busy || n <= 2); assert(P11_rate) :: else fi }
  :: deadworker
  fi;
  goto top
}

proctype world() {
  do
  :: d_step { time < END && passed == time && (busy || !anyready) -> time++; n = 0 }
  :: d_step { time < END && outages && time + AWAY < END - 10 -> outages--; been++; time = time + AWAY; n = 0 }       /* all are frozen */
  :: d_step { time < END && outages && time + AWAY < END - 10 -> outages--; been++; time = time + AWAY; n = 0;        /* all have died, and the recovery sends all */
       deadpass = 1; deadworker = 1; for (i : 0 .. N - 1) { if :: i < runs -> msg[i] = 1 :: else fi }; i = 0 }
  :: d_step { time == END && !busy -> for (i : 0 .. N - 1) { if :: i < runs -> P2_all_start = started[i]; assert(P2_all_start) :: else fi }; i = 0 } ; break
  :: time == END && busy -> break
  od
}

init {
  bounds;
  atomic {
    for (i : 0 .. N - 1) { if :: i < runs -> place[i] = i + 2; msg[i] = 1 :: else fi };
    given = runs + 1;
    run pass(); run worker(); run world() }
}
