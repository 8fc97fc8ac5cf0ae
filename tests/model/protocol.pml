/* The protocol of docs/protocol.md, for one job in one shard: horizon, claim, fence, watermark, sweep and edit. docs/model.md reads
   it aloud. Each d_step is one operation of the store or the queue; between two of them a process may sleep, for ever too. */
#include "errors.pml"
#ifdef TRACES
#include "trace.pml"
#else
#include "bounds.pml"
#endif
#define G 3                                     /* generations */
#define K (G * N)                               /* pairs of a generation and an instant, all of one generation side by side; sets are ints */
#define upto(x)      ((x) < 0 -> 0 : (1 << ((x) > 30 -> 30 : (x))) - 1)         /* the instants 1 to x */
#define within(a, b) (upto(b) & ~upto(a))
#define row(s, g)    ((s) >> ((g) - 1) * N & upto(N))                           /* the instants of one generation */
#define cut(s)       ((s) & upto(N))
#define rows(row)    (cut(row(1)) | cut(row(2)) << N | cut(row(3)) << 2 * N)
#define spread(s)    (cut(s) | cut(s) << N | cut(s) << 2 * N)                            /* these instants, for every generation */
#define flat(s)      (((s) | (s) >> N | (s) >> 2 * N) & upto(N))                /* the instants of all generations */
#define higher(s)    ((s) >> N | (s) >> 2 * N)                                  /* pairs of whose instant s has a higher generation */
#define lower(s)     (((s) << N | (s) << 2 * N) & upto(K))
#define any(s)       ((s) | higher(s) | lower(s))
#define lowest(s)    ((s) & -(s))
#define max(a, b)    ((a) > (b) -> (a) : (b))
#define min(a, b)    ((a) < (b) -> (a) : (b))
#define each(v, n, s, act) for (v : 0 .. n - 1) { if :: (s) >> v & 1 -> act :: else fi }

mtype = { PUBLISH, READ, LOOK, JOB, GROW, ARM, CLAIM, SEND, RUNS, CHECK, MOVE, EDIT, READX, FENCE, ANSWER, START };
byte now;                                       /* the true time */
byte X, W, S, owner;                            /* the shard: horizon, watermark, the sweep's cursor; whose pass wrote it last */
byte job = 1, until[G + 1], since[G + 1];       /* the job: its generation; when each older one ended; the instants of its edits, as they were written */
SET fires, timers, To[K];                       /* schedules; fire timers; for each timer, the fires that it stands for beside its own */
SET queued, fenced, began;                      /* what stands at each fire's run: a claim, a fence, or it has started */
int check[N];                                   /* for each run: its check timers, as a set of times after the fire */
SET sent;                                       /* messages: each may arrive once or often, early, late or never */
byte answered;                                  /* the generations whose edit was answered */
byte claiming;                                  /* edits among their own claims */
bool over;                                      /* looked at in the end: no more steps */
hidden byte i; hidden int b, c;
hidden byte P2_runs, P4_wakes, P8_edits_hold, X_grows, W_behind_X;

/* Under a horizon x and a job of generation j: what the timers in mine ask for, and the first fire after it. */
#define ends(g)   ((g) < j -> min(x, until[g]) : x)
#define limit(g)  upto(ends(g))
#define asks(g)   (row(fires, g) & ~(lowest(row(mine, g)) - 1) & limit(g))
#define after(g)  (asks(g) -> lowest(row(fires, g) & ~upto(x) & ((g) < j -> upto(until[g]) : ~0)) : 0)
#define joins(i)  (rows(asks) & ~upto(i + 1) & upto((i / N + 1) * N))
#define stands(i) (To[i] | 1 << i)
/* Where a claim may go: nothing stands, or a fence of its own or a lower generation, or a claim of a lower one. */
#define lost      ~(higher(fenced) | queued | higher(queued) | any(began))
#define free      (lost & (noover -> ~lower(queued) : ~0))
#define strange   (geneq -> 0 : higher(queued | began) | lower(began))          /* another generation's run stands */
#define fence(s)  (s & ~(fenced | higher(fenced) | queued | higher(queued) | any(began)))
#define put(set, b) queued = queued & ~any(b); fenced = fenced & ~any(b); set = set | b

#define arms      (rows(after) & ~timers)
#define claims    (rows(asks) & free)
#define sends     (rows(asks) & queued & ~out)
#define overtaken (rows(asks) & higher(fenced | queued) & ~any(sent | began))    /* it may have been claimed before that stood */
#define plan      grow = 0; each(i, K, mine, if :: !noto && joins(i) & ~To[i] -> grow = grow | 1 << i :: else fi)

/* Claim and send what the timers in mine ask for: To, successor, claim, send; each for all of them before the next. */
inline handle() {
  do
  :: d_step { turn(h) && grow -> b = one(GROW, grow); each(i, K, b, To[i] = To[i] | joins(i)); grow = grow & ~b; say(GROW, b, 0) }
  :: d_step { turn(h) && !grow && arms && (!sendfirst || !claims && !sends) -> b = one(ARM, arms); timers = timers | b; say(ARM, b, 0) }
  :: d_step { turn(h) && !grow && (!arms || sendfirst) && claims -> b = one(CLAIM, claims); put(queued, b); say(CLAIM, b, 0) }
  :: d_step { turn(h) && !grow && (!arms || sendfirst) && !claims && sends -> b = some(SEND, sends); out = out | b; sent = sent | b; say(SEND, b, 0) }
  :: d_step { turn(h) && !grow && (!arms || sendfirst) && !claims && overtaken -> b = one(SEND, overtaken); out = out | b; sent = sent | b; say(SEND, b, 0) }
  :: turn(h) && !grow && !arms && !claims && !sends -> mine = 0; break
  od
}

/* One pass of host h, whose clock shows n: all that wakes in (W, to], then the sweep. */
inline pass(n) {
  d_step { turn(h) ->                                           /* publish: nothing is read before */
    x = (nomono -> n + LA : max(X, n + LA)); X_grows = (x >= X); assert(X_grows);
    if :: nointent :: else -> X = x fi;
    owner = h; to = min(x, n + LA); lo = W; hi = to; again = false; say(PUBLISH, x, n) }
  do
  :: lo < hi ->
     d_step { turn(h) ->                                        /* read the timers */
       mine = timers & spread(within(lo, hi)); due = 0;
       for (i : 1 .. N) { if :: check[i - 1] & within(lo - i, hi - i) -> due = due | 1 << i - 1 :: else fi }
       lo = hi;
       if :: movefirst && owner == h -> if :: again -> S = max(S, hi) :: else -> W = hi fi :: else fi;
       say(READ, mine, due) }
     if
     :: again && mine ->
        d_step { turn(h) ->                                     /* sweep: look at the runs of all fires that they stand for */
          each(i, K, mine, look = look | stands(i));
          missing = look & lost; foreign = look & strange & ~missing; open = flat(look & (queued | higher(queued))); look = 0;
          say(LOOK, missing, open) }
     :: else
     fi;
     if
     :: mine && (!again || missing || foreign) ->
        d_step { turn(h) ->                                     /* read the job, after the timers: which of them are in force */
          j = job; if :: lateX && !again -> x = max(x, now + LA) :: else fi;
          mine = mine & rows(limit) & (nopast -> ~upto((j - 1) * N) : ~0);
          each(i, K, mine, if :: again && !(stands(i) & (foreign | missing & rows(limit))) -> mine = mine & ~(1 << i) :: else fi);
          plan; missing = 0; foreign = 0; say(JOB, j, 0) }
        handle();
        if :: again -> open = open | flat(out) :: else fi; out = 0; j = 0
     :: else
     fi;
     if
     :: due ->
        d_step { turn(h) ->                                     /* check timers: look at their runs */
          open = open | flat(queued) & due;
          if :: !again -> resend = queued & spread(due) :: else fi;
          due = 0; say(RUNS, open, 0) }
     :: else
     fi;
     do                                                         /* the next check before anything else is done for a run */
     :: d_step { turn(h) && open && !nocheck -> b = some(CHECK, open); each(i, N, b, check[i] = check[i] | 1 << (x - i)); open = open & ~b; say(CHECK, b, 0) }
     :: d_step { turn(h) && (!open || nocheck) && resend -> b = some(SEND, resend); sent = sent | b; resend = resend & ~b; say(SEND, b, 0) }
     :: turn(h) && (!open || nocheck) && !resend -> open = 0; mine = 0; missing = 0; foreign = 0; break
     od
  :: lo >= hi && !again ->
     again = true; lo = (walllag && n > LAG + 1 -> max(S, n - LAG - 1) : S); hi = (n > LAG -> min(to, n - LAG) : 0);
     s = max(S, hi)
  :: lo >= hi && again -> lo = 0; hi = 0; again = 0; break
  od;
  j = 0;
  d_step { turn(h) ->                                           /* the cursors, if nobody else has the shard by now */
    if :: owner == h -> W = max(W, to); S = s; W_behind_X = (S <= W && W <= X); assert(W_behind_X); never_stuck() :: else fi;
    x = 0; to = 0; s = 0; say(MOVE, W, S) }
}

#define owed(g) (row(fires, g) & ~upto(until[g - 1]) & ((g) < job -> upto(until[g]) : ~0))
/* P4: what has not ended has a timer that no cursor has passed, and so has an active job. */
inline never_stuck() {
  b = timers & ~spread(upto(S)); c = b;
  each(i, K, b, c = c | stands(i));
  P4_wakes = !(row(fires, job) & ~upto(max(X, until[job - 1]))) || row(b, job);
  for (i : 1 .. N) { if :: flat(queued & rows(owed)) & ~flat(c) & 1 << i - 1 && !(check[i - 1] & ~upto(S - i)) -> P4_wakes = false :: else fi }
  assert(P4_wakes)
}

#define locals byte x, to, lo, hi, s, j; bit again; SET mine, grow, out, look, missing, foreign, open, due, resend

proctype tick(byte h; byte n) alone { locals; n = clock(n + now); pass(n) }

#define past(j) (j == 3 -> row(fires, 2) | (onlylast -> 0 : row(fires, 1)) : (j == 2 -> row(fires, 1) : 0))
#define fences  fence(((past(j) & within(t, (hi == j -> x : min(x, since[hi])))) << (j - 1) * N))

#define astray (since[j] > t + SKEW)

/* An edit of the job, at an instant t; or its repetition, after an answer that was lost. A host whose clock is off by far learns of it by
   the answer to its write, and gives none. */
proctype edit(byte h; bit repeated; byte off) alone {
  locals; byte t, own;
  do
  :: d_step { turn(h) -> j = job; t = clock(now + off); if :: astray :: else -> t = max(t, since[j]) fi; say(JOB, j, t) }
     if
     :: (repeated || j == G) && !astray -> t = since[j]; own = j; break
     :: j == G && astray -> goto dead                           /* no generation is left to write it again */
     :: else ->
        if :: mine = row(fires, 1) :: mine = 0 :: mine = row(fires, 1) & 10 fi;      /* another schedule, or a pause */
        d_step { turn(h) ->
          if
          :: job == j && (now + off - t <= D || noD) ->
             until[j] = t; since[j + 1] = t; if :: nocut :: else -> for (i : 1 .. j) { until[i] = min(until[i], t) } fi; job = j + 1; own = job; fires = fires | mine << j * N;
             if :: !split -> timers = timers | lowest(mine & ~upto(t)) << j * N :: else fi
          :: else
          fi;
          say(EDIT, j, mine << 8 | t) }
        if :: own -> j = own; break :: else fi
     fi
  od;
  if :: split && !repeated -> timers = timers | lowest(mine & ~upto(t)) << (j - 1) * N :: else fi;
  mine = 0;
  do
  :: d_step { turn(h) -> x = (winLA -> t + LA : X); if :: repeated -> x = min(x, t + D + LA + SKEW) :: else fi; say(READX, x, 0) }
     d_step { turn(h) -> hi = (noreread -> j : job); say(JOB, hi, 0) }
     do
     :: d_step { turn(h) && fences && !nofence && (hi == j || !nostretch) -> b = one(FENCE, fences); put(fenced, b); say(FENCE, b, 0) }
     :: turn(h) && (!fences || nofence || hi != j && nostretch) -> s = t; break
     od;
     claiming++;                                                /* assumed: no sleep as long as a sweep's lag from here on */
     again = false;
     do                                                         /* own fires, which the ticks have passed already */
     :: hi == j && row(fires, j) & within(s, x) && now - t < LAG ->
        d_step { mine = lowest(row(fires, j) & within(s, x)) << (j - 1) * N; plan }
        handle();
        out = 0; s = x;
        d_step { turn(h) -> x = X; say(READX, x, 0) }
        if :: row(fires, j) & within(s, x) && !noreread -> d_step { turn(h) -> hi = job; again = (hi != j); say(JOB, hi, 0) } :: else fi
     :: else -> claiming--; break
     od;
     if :: hi == j -> break :: again :: else -> j = hi; t = since[j] fi
  od;
  x = 0; hi = 0; s = 0;
  d_step { turn(h) && !off -> answered = answered | 1 << own | 1 << j; say(ANSWER, own, 0) };
dead: skip
}

/* A message arrives. It is a hint: if its fire is due, what starts is the claim that stands there, of whatever generation. */
#define arrived     (noversion -> sent & any(queued | fenced) : queued & any(sent))
#define old(g)      (answered >> g & 1 -> upto((g - 1) * N) & ~spread(upto(since[g])) : 0)
#define start(s)    b = s; put(began, b); P8_edits_hold = !(b & (old(2) | old(3))); assert(P8_edits_hold)
#define arrives(f)  :: d_step { turn(0) && f <= now && arrived & spread(1 << f - 1) -> start(one(START, arrived & spread(1 << f - 1))); say(START, b, 0) }
proctype world() alone { byte h; do arrives(1) arrives(2) arrives(3) arrives(4) arrives(5) :: d_step { turn(0) && now < T -> now++ } :: d_step { turn(0) && !claiming && now < late -> now = late } od }

/* A host whose passes go well. In the end all others have died, and every message that has not arrived is lost. */
proctype healthy() alone {
  byte h = 9, n0; locals; byte n;
  do
  :: atomic { !over && n0 < passes -> n0++; n = now; pass(n); n = 0 }
  :: atomic {
       sent = 0; n0 = 0;
       do
       :: n0 < 3 -> n0++; now = now + LAG + N; n = now; pass(n); d_step { start(queued & any(sent)) }
       :: else -> break
       od;
       P2_runs = !((owed(1) | owed(2) | owed(3)) & ~flat(began)); assert(P2_runs); 
       over = true; for (i : 0 .. N - 1) { check[i] = 0 }; now = 0; X = 0; W = 0; S = 0; owner = 0; timers = 0; queued = 0; fenced = 0; began = 0; sent = 0 }
     break
  od
}

init {
  bounds;
  atomic {
    opening; fires = upto(last); timers = 1;
    do :: ticks > i -> i++; run tick(i, (i == 1 -> ahead : 0)) :: else -> break od;
    i = 0; do :: edits > i -> i++; run edit(10 + i, false, (i <= wrong -> far : 0)) :: else -> break od;
    i = 0; do :: repeats > i -> i++; run edit(20 + i, true, 0) :: else -> break od;
    run world(); run healthy() }
}
