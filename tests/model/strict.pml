/* A line that stands still behind a run which ended badly: the overlap policy strict, for one job whose runs go one after the other. What line.pml has of the line is here as far as
   this needs it. docs/model.md reads it aloud. Each d_step is one operation of the store; between two of them a hand may sleep, or die. What it has read says no more than what stood:
   a write on the condition of it fails. Runs are earlier by their numbers, and their messages come in any order. */
#define R 3                                     /* runs */
#define H 2                                     /* hands: workers, and whoever takes a message */
#define P 5                                     /* all who read and write: hands, whoever retries, and two who open or edit */
hidden byte planted, runs = 3, hands = 2, operators = 1;
byte faults, fails, retries, opens, edits, prunes;   /* how often each of it happens */
c_code {
	static void bound(const char *name, unsigned char *v) { if (getenv(name)) { *v = atoi(getenv(name)); } }
}
#define bounds c_code { \
	bound("PLANTED", &planted); bound("RUNS", &runs); bound("HANDS", &hands); bound("OPERATORS", &operators); bound("FAULTS", &now.faults); bound("FAILS", &now.fails); bound("RETRIES", &now.retries); \
	bound("OPENS", &now.opens); bound("EDITS", &now.edits); bound("PRUNES", &now.prunes); }
/* Each number of PLANTED takes one rule out; 0 is the protocol as it is. */
#define noholder   (planted == 1)  /* who has ended badly holds no place */
#define leaves     (planted == 2)  /* who has ended badly is left out by whoever tells the gate of it */
#define apart      (planted == 3)  /* a retry is written before its place, and not with it */
#define nokeep     (planted == 4)  /* a retry keeps no place */
#define nosettle   (planted == 5)  /* who ended badly holds up the line, since whenever the job is strict */
#define noopen     (planted == 6)  /* whoever opens the gate lets nobody in */
#define nocas      (planted == 7)  /* whoever opens the gate writes it whatever stands there */
#define noedit     (planted == 8)  /* an edit lets nobody in */
#define behind     (planted == 9)  /* a retry that kept its place waits in line all the same */
#define nowake     (planted == 10) /* who has ended well lets nobody in */
#define jobfirst   (planted == 11) /* whoever lets in reads the job before the gate */
#define forever    (planted == 12) /* a run that is gone holds its place on */
#define anyend     (planted == 13) /* who was retried and has succeeded holds its place on */

#define QUEUED 1
#define WAITING 2
#define RUNNING 3
#define OK 4
#define BAD 5
#define GONE 6

byte st[R], op[R], msgs[R];                     /* a run, its opening, and its messages */
byte eo[R], em[R];                              /* the gate: the opening of its entry, 0 for none, and since when the job was strict then */
bit place[R];                                   /* the line */
byte strict = 1;                                /* since when the job is, 0: it is not */
byte was = 1;                                   /* since when it was last */
bit blocks[R];                                  /* nobody may be let in before this run has succeeded */
bit busy[P], gst[P]; byte rst[P];               /* who is at work, and since they read it, whether the gate has changed, and which of the runs */
bit faulted;
hidden byte i, k, n, z;
hidden byte G1_limit, G2_nobody_forgotten, G3_stands_still, all_end;

#define each(v, act) for (v : 0 .. R - 1) { if :: v < runs -> act :: else fi }
#define stale(r)     (rst[h] >> (r) & 1)
#define ended(r)     (st[r] >= OK)
#define line(r)      (place[r] && st[r] == WAITING)
#define held         ((wo[0] -> 1 : 0) + (wo[1] -> 1 : 0) + (wo[2] -> 1 : 0))
/* Whether the entry that was read holds a place, by the run as it stands. */
#define holds(r)     ((op[r] == wo[r] && (st[r] == QUEUED || st[r] == RUNNING || (st[r] == BAD && wm[r] && !noholder) || (st[r] == OK && anyend && op[r] > 1))) || (st[r] == GONE && forever))
inline wroterun(r)  { for (i : 0 .. P - 1) { if :: busy[i] -> rst[i] = rst[i] | 1 << r :: else fi }; z = 0 }
inline wrotegate()  { for (i : 0 .. P - 1) { if :: busy[i] -> gst[i] = 1 :: else fi }; z = 0 }
inline readrun(r)   { rst[h] = rst[h] & ~(1 << r) }
inline readgate()   { gst[h] = 0; each(i, wo[i] = eo[i]; wm[i] = em[i]); z = 0 }
inline writegate()  { each(i, eo[i] = wo[i]; em[i] = wm[i]); wrotegate() }
inline progress()   { n = 0; each(i, if :: st[i] == RUNNING -> n++ :: else fi); G1_limit = (n <= 1); assert(G1_limit) }
/* Nobody but a run itself is let in while it is to succeed first. */
inline letin_(x)    { each(i, if :: i != x -> G3_stands_still = !blocks[i]; assert(G3_stands_still) :: else fi); z = 0 }
inline free()       { each(i, blocks[i] = 0); z = 0 }
inline send(x)      { if :: msgs[x] < 2 -> msgs[x]++ :: else fi }
#define dies  :: d_step { faults -> faults--; faulted = 1 }; goto dead

/* Reads the runs of all entries, and leaves out who holds no place. */
inline look() {
  skip; d_step { each(k, readrun(k); if :: wo[k] && !(holds(k)) -> wo[k] = 0; wm[k] = 0 :: else fi); z = 0 }
}
/* Leaves out who has ended badly, where the job is not strict since it was let in. */
inline settle(since) { each(k, if :: wo[k] && wm[k] != since && st[k] == BAD && !stale(k) && !nosettle -> wo[k] = 0; wm[k] = 0 :: else fi); z = 0 }

/* Lets in whoever waits first and has room, looking at all that hold places. */
inline letin() {
  skip;
again:
  if :: jobfirst -> d_step { cur = strict } :: else fi;
  skip; d_step { readgate(); w = R; each(k, if :: line(k) && w == R -> w = k :: else fi); if :: w < R -> readrun(w) :: else fi }
  if :: w == R -> goto done :: else fi;
  if :: !jobfirst -> d_step { cur = strict } :: else fi;
  look();
  skip; d_step { settle(cur) }
  if
  :: held == 0 ->
     if
     :: d_step { !gst[h] && !stale(w) && st[w] == WAITING -> letin_(w); wo[w] = op[w]; wm[w] = cur; writegate(); place[w] = 0; st[w] = QUEUED; wroterun(w); send(w) }; goto again
     :: d_step { gst[h] || stale(w) || st[w] != WAITING }; goto again
     fi
  :: else
  fi;
done:
  skip; d_step { each(k, wo[k] = 0; wm[k] = 0); w = 0; cur = 0; busy[h] = 0; rst[h] = 0; gst[h] = 0 }
}

proctype hand(byte h) {
  byte r, wo[R], wm[R], w, cur, def;
take:
  skip; d_step { each(k, wo[k] = 0; wm[k] = 0); w = 0; r = 0; cur = 0; def = 0; busy[h] = 0; rst[h] = 0; gst[h] = 0 }
end:
  if
  :: d_step { msgs[0] -> msgs[0]--; r = 0; busy[h] = 1 }
  :: d_step { msgs[1] -> msgs[1]--; r = 1; busy[h] = 1 }
  :: d_step { msgs[2] -> msgs[2]--; r = 2; busy[h] = 1 }
  fi;
read:
  skip; d_step { readrun(r) }
  if
  :: ended(r) && !stale(r) -> goto after
  :: st[r] == QUEUED && !stale(r) -> skip
  :: st[r] == WAITING && !stale(r) -> goto after
  :: stale(r) -> goto read
  :: else -> goto take
  fi;
enter:
  skip; d_step { def = strict }                   /* what it was claimed for */
  skip; d_step { readgate(); w = 0; each(k, if :: line(k) -> w = 1 :: else fi); z = 0 }
  if :: wo[r] == op[r] && !(behind && op[r] > 1) -> goto begin :: else fi;
  if :: w -> goto join :: else fi;
  look();
  skip; d_step { if :: wo[r] && wo[r] != op[r] -> wo[r] = 0 :: else fi }
  if :: held -> d_step { cur = strict; settle(cur) } :: else fi;
  if
  :: held == 0 ->
     if
     :: d_step { !gst[h] && !stale(r) && st[r] == QUEUED -> letin_(r); wo[r] = op[r]; wm[r] = def; writegate() }
        if :: skip :: d_step { faults -> faults--; faulted = 1 }; goto read fi
     :: d_step { gst[h] || stale(r) || st[r] != QUEUED }; goto read
     fi;
     goto begin
  :: else
  fi;
join:
  if
  :: d_step { !gst[h] && !stale(r) && st[r] == QUEUED -> st[r] = WAITING; place[r] = 1; wroterun(r); wrotegate() }
  :: d_step { gst[h] || stale(r) || st[r] != QUEUED }; goto read
  fi;
  if
  :: goto after
  dies
  fi;
begin:
  if
  :: d_step { !stale(r) && st[r] == QUEUED -> st[r] = RUNNING; wroterun(r); readrun(r); progress() }
  :: d_step { stale(r) || st[r] != QUEUED }; goto read
  fi;
  if
  :: d_step { st[r] == RUNNING -> st[r] = OK; blocks[r] = 0; wroterun(r) }
  :: d_step { fails && st[r] == RUNNING -> fails--; st[r] = BAD; blocks[r] = (em[r] && em[r] == strict); wroterun(r) }
  dies
  fi;
  if
  :: nowake && st[r] == OK -> goto take
  :: !(nowake && st[r] == OK) -> goto after
  dies
  fi;
after:
  if
  :: leaves && st[r] == BAD ->
     skip; d_step { readgate() }
     if
     :: d_step { !gst[h] && st[r] == BAD && wo[r] == op[r] -> wo[r] = 0; writegate() }
     :: d_step { gst[h] || st[r] != BAD || wo[r] != op[r] }
     fi
  :: else
  fi;
  letin();
  goto take;
dead:
  if :: d_step { msgs[r] < 2 -> msgs[r]++ } :: skip fi;   /* the message comes back, or is lost */
  goto take
}

/* Somebody retries a run that ended badly: the run and its place are one write. */
proctype retrier() {
  byte h = H, r, wo[R], wm[R];
take:
  skip; d_step { each(k, wo[k] = 0; wm[k] = 0); busy[h] = 0; rst[h] = 0; gst[h] = 0; r = 0 }
end:
  if
  :: d_step { retries && st[0] == BAD -> r = 0; busy[h] = 1 }
  :: d_step { retries && st[1] == BAD -> r = 1; busy[h] = 1 }
  :: d_step { retries && runs == 3 && st[2] == BAD -> r = 2; busy[h] = 1 }
  fi;
  skip; d_step { readrun(r) }
  skip; d_step { readgate() }
  if
  :: apart ->
     if
     :: d_step { !stale(r) && st[r] == BAD -> retries--; op[r]++; st[r] = QUEUED; wroterun(r); send(r) }
     :: d_step { stale(r) || st[r] != BAD }; goto take
     fi;
     if
     :: d_step { !gst[h] && wo[r] && wo[r] + 1 == op[r] -> wo[r] = op[r]; writegate() }
     :: d_step { !( !gst[h] && wo[r] && wo[r] + 1 == op[r]) }
     fi
  :: !apart ->
     if
     :: d_step { !stale(r) && !gst[h] && st[r] == BAD -> retries--; if :: wo[r] == op[r] && wm[r] && wm[r] == strict && !nokeep -> wo[r]++; writegate() :: else fi;
          op[r]++; st[r] = QUEUED; wroterun(r); send(r) }
     :: d_step { stale(r) || gst[h] || st[r] != BAD }
     fi
  fi;
  goto take
}

/* Somebody opens the gate, edits the job to another policy and back, or the record of a run that has ended is cleaned up. */
proctype operator(byte h) {
  byte wo[R], wm[R], w, cur, by;
take:
  skip; d_step { each(k, wo[k] = 0; wm[k] = 0); w = 0; cur = 0; by = 0; busy[h] = 0; rst[h] = 0; gst[h] = 0 }
end:
  if
  :: d_step { opens && (st[0] == BAD || st[1] == BAD || st[2] == BAD) -> opens--; busy[h] = 1 } goto open
  :: d_step { edits -> edits--; busy[h] = 1; free(); if :: strict -> strict = 0 :: else -> was++; strict = was fi }
     if :: noedit -> goto take :: !noedit -> goto lets fi
  :: d_step { prunes && st[0] == BAD -> prunes--; busy[h] = 1; st[0] = GONE; blocks[0] = 0; wroterun(0) } goto lets   /* as the check of whoever waits does */
  fi;
open:
  skip; d_step { readgate() }
  look();
  skip; d_step { by = 0; each(k, if :: wo[k] && st[k] == BAD && !stale(k) -> by = by | 1 << k; wo[k] = 0; wm[k] = 0 :: else fi); z = 0 }
  if :: by == 0 -> goto take :: else fi;
  if
  :: d_step { !gst[h] || nocas -> writegate(); each(k, if :: by >> k & 1 -> blocks[k] = 0 :: else fi); z = 0 }
  :: d_step { gst[h] && !nocas }; goto open
  fi;
  if :: noopen -> goto take :: !noopen -> skip fi;
lets:
  if :: skip :: d_step { faults -> faults--; faulted = 1 }; goto take fi;
  letin();
  goto take
}

#define stuck(r) (r >= runs || ended(r) || ((st[r] == WAITING) && (blocks[0] || blocks[1] || blocks[2])))
/* When nothing happens any more: all have ended, or the line stands still, where nothing has failed. Else checks look after what is left, again and again, and it is so. */
proctype mender() {
  byte r, round;
  timeout -> atomic {
    G2_nobody_forgotten = (faulted || stuck(0) && stuck(1) && stuck(2)); assert(G2_nobody_forgotten);
    round = 0;
    do
    :: round < 2 * R ->
       r = 0;
       do
       :: r < runs ->
          each(i, if :: eo[i] && !(op[i] == eo[i] && (st[i] == QUEUED || st[i] == RUNNING || (st[i] == BAD && em[i] && em[i] == strict))) -> eo[i] = 0 :: else fi);
          n = (eo[0] -> 1 : 0) + (eo[1] -> 1 : 0) + (eo[2] -> 1 : 0);
          if
          :: st[r] == RUNNING -> st[r] = OK; blocks[r] = 0
          :: st[r] == QUEUED && eo[r] == op[r] -> st[r] = OK; blocks[r] = 0
          :: (st[r] == QUEUED && eo[r] != op[r]) || st[r] == WAITING -> if :: n == 0 -> st[r] = OK :: else -> st[r] = WAITING fi
          :: else
          fi;
          r++
       :: else -> break
       od;
       round++
    :: else -> break
    od;
    all_end = stuck(0) && stuck(1) && stuck(2); assert(all_end) }
}

init {
  bounds;
  atomic {
    for (i : 0 .. R - 1) { op[i] = 1; if :: i < runs -> st[i] = QUEUED; msgs[i] = 1 :: else -> st[i] = OK fi };
    run hand(0); if :: hands > 1 -> run hand(1) :: else fi; run retrier(); run operator(H + 1); if :: operators > 1 -> run operator(H + 2) :: else fi; run mender() }
}
