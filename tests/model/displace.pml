/* Runs that make others give way at a job's own gate: the overlap policies cancel and replace, for one job. What line.pml has of the line is here as far as these need it.
   docs/model.md reads it aloud. Each d_step is one operation of the store; between two of them a hand may sleep, or die. What it has read says no more than what stood: a write on the
   condition of it fails. Runs are later by their numbers, and their messages come in any order. */
#define R 3                                     /* runs */
#define H 2                                     /* hands: workers, and whoever takes a message */
hidden byte planted, runs = 3, limit = 1, replaces, stubborn;
byte faults, cancels;                           /* how often a hand dies or an answer is lost; how often somebody cancels a run */
c_code {
	static void bound(const char *name, unsigned char *v) { if (getenv(name)) { *v = atoi(getenv(name)); } }
}
#define bounds c_code { \
	bound("PLANTED", &planted); bound("RUNS", &runs); bound("LIMIT", &limit); bound("REPLACES", &replaces); bound("STUBBORN", &stubborn); \
	bound("FAULTS", &now.faults); bound("CANCELS", &now.cancels); }
/* Each number of PLANTED takes one rule out; 0 is the protocol as it is. */
#define nolater    (planted == 1)  /* whoever comes does not look whether those in progress are later */
#define nowaiter   (planted == 2)  /* whoever comes does not look whether one that waits is later */
#define noreask    (planted == 3)  /* the check of a run that waits asks nobody to stop */
#define apart      (planted == 4)  /* replace: the gate is written before the ends, and not with them */
#define unfenced   (planted == 5)  /* a worker writes its end whatever stands there */
#define follows    (planted == 6)  /* who was asked to stop and fails is tried again */
#define nowake     (planted == 7)  /* who has ended since it was asked lets nobody in */
#define nocas      (planted == 8)  /* the gate is written whatever stands there */
#define unseen     (planted == 9)  /* replace: a run is ended whatever has become of it since it was read */
#define several    (planted == 10) /* who waited before goes on waiting */
#define wrongone   (planted == 11) /* the latest of those in progress gives way, not the earliest */
#define noask      (planted == 12) /* who joins asks nobody: that is left to its check, which comes where nothing happens any more */

#define untied     (planted == 13) /* who asks does not look whether the gate, and the one that waits, stand as it has read them */

#define NONE 0
#define QUEUED 1
#define WAITING 2
#define RUNNING 3
#define ENDED 4

byte st[R], msgs[R];                            /* a run, and its messages */
bit asked[R], tried[R], lost[R];                /* whether it was asked to stop, an attempt of it failed, and it gave way: it was skipped, replaced or asked */
bit byhand[R];                                  /* somebody has cancelled it */
bit entry[R], place[R];                         /* the gate, and the line */
bit gst[H]; byte rst[H];                        /* whether the gate has changed since a hand has read it, and which of the runs */
bit faulted;
hidden byte i, k, n, z;                         /* of one operation; none ends with a loop */
hidden byte G1_limit, G2_nobody_forgotten, G4_for_a_later_one, G4_for_one_that_waits, G4_one_waits, G4_earliest_gives_way, G4_latest_runs, P7_one_end, no_attempt_follows, all_end;

#define each(v, act) for (v : 0 .. R - 1) { if :: v < runs -> act :: else fi }
#define stale(r)     (rst[h] >> (r) & 1)
#define holder(r)    (st[r] == QUEUED || st[r] == RUNNING)
#define held         ((we[0] -> 1 : 0) + (we[1] -> 1 : 0) + (we[2] -> 1 : 0))
#define line(r)      (place[r] && st[r] == WAITING)
#define nobodywaits  !(line(0) || line(1) || line(2))
/* One that ends only when it is asked to goes on where nobody waits for it. */
#define atrest(r)    (r >= runs || st[r] == ENDED || (stubborn && st[r] == RUNNING && nobodywaits))
inline wroterun(r)  { for (i : 0 .. H - 1) { rst[i] = rst[i] | 1 << r }; z = 0 }
inline wrotegate()  { for (i : 0 .. H - 1) { gst[i] = 1 }; z = 0 }
inline readrun(r)   { rst[h] = rst[h] & ~(1 << r) }
inline readgate()   { gst[h] = 0; each(i, we[i] = entry[i]) }
inline writegate()  { each(i, entry[i] = we[i]); wrotegate() }
inline progress()   { n = 0; each(i, if :: st[i] == RUNNING -> n++ :: else fi); G1_limit = (n <= limit); assert(G1_limit) }
inline waits()      { n = 0; each(i, if :: line(i) -> n++ :: else fi); G4_one_waits = (n <= 1); assert(G4_one_waits) }
inline givesway(x, to) { G4_for_a_later_one = (to > x); assert(G4_for_a_later_one); lost[x] = 1 }
/* A run is asked for one that waits, and not for one that was let in, or has left the line. */
inline gaveway(x, to) { G4_for_one_that_waits = (st[to] == WAITING); assert(G4_for_one_that_waits); givesway(x, to) }
inline ends(x)      { P7_one_end = (st[x] != ENDED); assert(P7_one_end); st[x] = ENDED; wroterun(x) }
inline send(x)      { if :: msgs[x] < 2 -> msgs[x]++ :: else fi }
/* Of those in progress, the one that gives way to r: the earliest, where that is earlier. R for none. */
inline chosen()     { x = R; each(k, if :: we[k] && (wrongone || x == R) && k != r && (k < r || nolater) -> x = k :: else fi) }
#define asread ((!gst[h] && !stale(w)) || untied)
#define dies  :: d_step { faults -> faults--; faulted = 1 }; goto dead

/* Lets in whoever waits and has room, looking at all that hold places; and where it has none, has one that holds a place asked to stop. */
inline letin() {
  skip;
again:
  skip; d_step { readgate(); w = R; each(k, if :: line(k) -> w = k :: else fi); if :: w < R -> readrun(w) :: else fi }
  if :: w == R -> goto done :: else fi;
  j = 0;
  do
  :: j < runs && we[j] -> d_step { readrun(j); if :: holder(j) :: else -> we[j] = 0 fi; j++ }
  :: j < runs && !we[j] -> j++
  :: j == runs -> break
  od;
  if
  :: held < limit ->
     if
     :: d_step { (!gst[h] || nocas) && !stale(w) && st[w] == WAITING -> we[w] = 1; writegate(); place[w] = 0; st[w] = QUEUED; wroterun(w); send(w) }; goto done
     :: d_step { (gst[h] && !nocas) || stale(w) || st[w] != WAITING }; goto again
     fi
  :: else
  fi;
  if :: noask -> goto done :: else fi;
  skip; d_step { x = R; each(k, if :: we[k] && k < w && (wrongone || x == R) -> x = k :: else fi);
    if :: x < R -> each(k, if :: we[k] && k < x -> G4_earliest_gives_way = 0; assert(G4_earliest_gives_way) :: else fi) :: else fi }
  if :: x == R -> goto done :: else fi;
  if
  :: d_step { asked[x] || stale(x) }; if :: asked[x] -> goto done :: else -> goto again fi
  :: d_step { !asked[x] && !stale(x) && asread && st[x] == RUNNING -> gaveway(x, w); asked[x] = 1; wroterun(x) }; goto done
  :: d_step { !asked[x] && !stale(x) && asread && st[x] == QUEUED -> gaveway(x, w); asked[x] = 1; ends(x) };
     if
     :: goto again
     dies
     fi
  :: d_step { !asked[x] && !stale(x) && !(asread && holder(x)) }; goto again
  fi;
done:
  skip
}

proctype hand(byte h) {
  byte r, we[R], j, x, w, line; bit late;
take:
  skip; d_step { we[0] = 0; we[1] = 0; we[2] = 0; j = 0; x = 0; w = 0; r = 0; line = 0; late = 0; rst[h] = 0; gst[h] = 0 }
end:
  if
  :: d_step { msgs[0] -> msgs[0]--; r = 0 }
  :: d_step { msgs[1] -> msgs[1]--; r = 1 }
  :: d_step { msgs[2] -> msgs[2]--; r = 2 }
  fi;
read:
  skip; d_step { readrun(r) }
  if
  :: st[r] == ENDED && !stale(r) -> goto after
  :: st[r] == QUEUED && !stale(r) -> skip
  :: st[r] == WAITING && !stale(r) -> goto after   /* whoever joined may have died before it asked */
  :: stale(r) -> goto read
  :: else -> goto take
  fi;
enter:
  skip; d_step { readgate(); line = 0; each(k, if :: line(k) -> line = line | 1 << k; readrun(k) :: else fi) }
  if :: we[r] -> goto begin :: else fi;
  j = 0;
  do
  :: j < runs && we[j] -> d_step { readrun(j); if :: holder(j) :: else -> we[j] = 0 fi; j++ }
  :: j < runs && !we[j] -> j++
  :: j == runs -> break
  od;
  if
  :: held < limit && !line ->
     if
     :: d_step { (!gst[h] || nocas) && !stale(r) && st[r] == QUEUED -> we[r] = 1; writegate() }
        if :: skip :: d_step { faults -> faults--; faulted = 1 }; goto read fi
     :: d_step { (gst[h] && !nocas) || stale(r) || st[r] != QUEUED }; goto read
     fi;
     goto begin
  :: held < limit && line -> letin(); goto read
  :: else
  fi;
  skip; d_step { chosen(); late = 0; w = R;
    each(k, if :: line >> k & 1 && k > r && !nowaiter -> late = 1; w = k :: line >> k & 1 && k == r -> late = 1; w = r :: else fi);
    each(k, if :: we[k] && k > r && x == R && !late -> late = 1; w = k :: else fi) }
  if
  :: w == r -> goto take
  :: late && w != r ->                             /* the earlier is skipped, for one that it has seen */
     if
     :: d_step { !stale(r) && st[r] == QUEUED -> givesway(r, w); ends(r) }; goto after
     :: d_step { stale(r) || st[r] != QUEUED }; goto read
     fi
  :: else
  fi;
  if
  :: replaces && apart ->
     if
     :: d_step { (!gst[h] || nocas) && !stale(r) && st[r] == QUEUED -> we[x] = 0; we[r] = 1; writegate() }
     :: d_step { (gst[h] && !nocas) || stale(r) || st[r] != QUEUED }; goto read
     fi;
     if
     :: d_step { st[x] != ENDED -> givesway(x, r); ends(x) }
     :: d_step { st[x] == ENDED }
     dies
     fi;
     goto begin
  :: replaces && !apart ->                         /* its place, and the end of who gives way, are one write */
     if
     :: d_step { (!gst[h] || nocas) && !stale(r) && st[r] == QUEUED && (!stale(x) || unseen) -> we[x] = 0; we[r] = 1; writegate(); givesway(x, r); ends(x);
          each(k, if :: line >> k & 1 && k < r -> givesway(k, r); st[k] = ENDED; place[k] = 0; rst[0] = rst[0] | 1 << k; rst[1] = rst[1] | 1 << k :: else fi) }
        if :: skip :: d_step { faults -> faults--; faulted = 1 }; goto read fi
     :: d_step { (gst[h] && !nocas) || stale(r) || st[r] != QUEUED || (stale(x) && !unseen) }; goto read
     fi;
     goto begin
  :: else
  fi;
  /* cancel: it joins in place of who waited before, and asks */
  if
  :: d_step { (!gst[h] || nocas) && !stale(r) && st[r] == QUEUED && !(rst[h] & line) -> st[r] = WAITING; place[r] = 1; wroterun(r); writegate();
       each(k, if :: line >> k & 1 && k < r && !several -> givesway(k, r); st[k] = ENDED; place[k] = 0; rst[0] = rst[0] | 1 << k; rst[1] = rst[1] | 1 << k :: else fi); waits() }
  :: d_step { (gst[h] && !nocas) || stale(r) || st[r] != QUEUED || rst[h] & line }; goto read
  fi;
  if
  :: goto after
  dies
  fi;
begin:
  if
  :: d_step { !stale(r) && st[r] == QUEUED -> no_attempt_follows = !asked[r]; assert(no_attempt_follows); st[r] = RUNNING; wroterun(r); readrun(r); progress() }
  :: d_step { stale(r) || st[r] != QUEUED }; goto read
  fi;
  /* The attempt. One that is stubborn ends when it is asked to, and not by itself. */
  if
  :: d_step { (st[r] == RUNNING || unfenced) && (!stubborn || asked[r] || r == runs - 1 || st[r] != RUNNING) -> ends(r) }
  :: d_step { st[r] == RUNNING && !tried[r] && !stubborn -> tried[r] = 1; if :: asked[r] && !follows -> ends(r) :: else -> st[r] = QUEUED; wroterun(r); send(r) fi }
  :: d_step { st[r] != RUNNING && !unfenced }      /* it is fenced: its end is refused */
  dies
  fi;
  if
  :: nowake -> goto take
  :: !nowake -> goto after
  dies
  fi;
after:
  letin();
  goto take;
dead:
  if :: d_step { msgs[r] < 2 -> msgs[r]++ } :: skip fi;   /* the message comes back, or is lost */
  goto take
}

proctype world() {
end:
  do
  :: d_step { cancels && (st[0] == QUEUED || st[0] == WAITING) -> cancels--; byhand[0] = 1; st[0] = ENDED; wroterun(0); send(0) }
  :: d_step { cancels && (st[1] == QUEUED || st[1] == WAITING) -> cancels--; byhand[1] = 1; st[1] = ENDED; wroterun(1); send(1) }
  :: d_step { cancels && runs == 3 && (st[2] == QUEUED || st[2] == WAITING) -> cancels--; byhand[2] = 1; st[2] = ENDED; wroterun(2); send(2) }
  od
}

/* When nothing happens any more: all have ended, where nothing has failed. Else checks look after what is left, again and again, and all end. The latest run gives way to nobody. */
proctype mender() {
  byte r, round;
  timeout -> atomic {
    G2_nobody_forgotten = (faulted || atrest(0) && atrest(1) && atrest(2)); assert(G2_nobody_forgotten);
    G4_latest_runs = !lost[runs - 1]; assert(G4_latest_runs);
    round = 0;
    do
    :: round < 2 * R ->
       r = 0;
       do
       :: r < runs ->
          if
          :: st[r] == RUNNING && (!stubborn || asked[r] || r == runs - 1) -> st[r] = ENDED
          :: st[r] == WAITING ->
             each(i, if :: entry[i] && !holder(i) -> entry[i] = 0 :: else fi);
             n = entry[0] + entry[1] + entry[2];
             if
             :: n < limit -> place[r] = 0; st[r] = QUEUED; entry[r] = 1
             :: n >= limit && !replaces && !noreask -> each(i, if :: entry[i] && i < r -> asked[i] = 1; if :: st[i] == QUEUED -> st[i] = ENDED :: else fi :: else fi)
             :: else
             fi
          :: st[r] == QUEUED && entry[r] -> st[r] = ENDED
          :: st[r] == QUEUED && !entry[r] ->
             each(i, if :: entry[i] && !holder(i) -> entry[i] = 0 :: else fi);
             n = entry[0] + entry[1] + entry[2];
             if
             :: n < limit -> entry[r] = 1; st[r] = ENDED
             :: n >= limit && replaces -> each(i, if :: entry[i] && i < r -> st[i] = ENDED; entry[i] = 0 :: else fi); st[r] = ENDED
             :: n >= limit && !replaces -> st[r] = WAITING; place[r] = 1
             fi
          :: else
          fi;
          r++
       :: else -> break
       od;
       round++
    :: else -> break
    od;
    all_end = atrest(0) && atrest(1) && atrest(2); assert(all_end) }
}

init {
  bounds;
  atomic {
    for (i : 0 .. R - 1) { if :: i < runs -> st[i] = QUEUED; msgs[i] = 1 :: else -> st[i] = ENDED fi };
    run hand(0); run hand(1); run world(); run mender() }
}
