/* The line at a job's own gate, for one job: enter, join, let in, cancels, openings by hand, and the check of a run that waits as the mender of what a crash has left.
   docs/model.md reads it aloud. Each d_step is one operation of the store; between two of them a hand may sleep, or die. What it has read says no more than what stood: a write on the
   condition of it fails. Runs have their places in line by their numbers. */
#define R 3                                     /* runs */
#define H 2                                     /* hands: workers, and people who cancel */
hidden byte planted, runs = 3, limit = 1;
byte openings, cancels, faults;                  /* how often a run is opened by hand, one is cancelled, a hand dies or an answer is lost */
c_code {
	static void bound(const char *name, unsigned char *v) { if (getenv(name)) { *v = atoi(getenv(name)); } }
}
#define bounds c_code { \
	bound("PLANTED", &planted); bound("RUNS", &runs); bound("LIMIT", &limit); \
	bound("OPENINGS", &now.openings); bound("CANCELS", &now.cancels); bound("FAULTS", &now.faults); }
/* Each number of PLANTED takes one rule out; 0 is the protocol as it is. */
#define nosecond   (planted == 1)  /* whoever joins first does not look at the holders again */
#define overtakes  (planted == 2)  /* who finds room enters past those that wait */
#define noopening  (planted == 3)  /* an entry is of its run, whatever its opening */
#define apart      (planted == 4)  /* the run is written to wait before the gate and the place are */
#define nowake     (planted == 5)  /* a cancel lets nobody in */
#define nocas      (planted == 6)  /* the gate is written whatever stands there */
#define nocheck    (planted == 7)  /* the check of a run that waits does nothing */
#define fromback   (planted == 8)  /* whoever is found first in line is let in, not the first */
#define keeps      (planted == 9)  /* the place of who is let in stays */
#define unended    (planted == 10) /* whoever ends lets nobody in */
#define nolook     (planted == 11) /* the check does not look at the holders */
#define late       (planted == 12) /* a late delivery replaces the entry of a newer opening */

#define NONE 0
#define QUEUED 1
#define WAITING 2
#define RUNNING 3
#define ENDED 4

byte st[R], op[R], msgs[R];                     /* a run, its opening, and its messages */
byte entry[R], count;                           /* the gate: for each run the opening of its entry and one, 0 for none; and how many places stand */
bit place[R];                                   /* the line */
bit gst[H]; byte rst[H];                        /* whether the gate has changed since a hand has read it, and which of the runs */
bit busy[H], faulted;
hidden byte i, k, n, z;                         /* of one operation; none ends with a loop */
hidden byte G1_limit, G2_nobody_forgotten, G3_order, all_end;

#define each(v, act) for (v : 0 .. R - 1) { if :: v < runs -> act :: else fi }
#define stale(r)     (rst[h] >> (r) & 1)
#define mine(r)      (noopening -> 1 : op[r] + 1)
#define holder(r, e) ((st[r] == QUEUED || st[r] == RUNNING) && (e) == mine(r))
inline wroterun(r)  { for (i : 0 .. H - 1) { rst[i] = rst[i] | 1 << r }; z = 0 }
inline wrotegate()  { for (i : 0 .. H - 1) { gst[i] = 1 }; z = 0 }
inline readrun(r)   { rst[h] = rst[h] & ~(1 << r) }
inline readgate()   { gst[h] = 0; each(i, we[i] = entry[i]); wc = count }
inline progress()   { n = 0; each(i, if :: st[i] == RUNNING -> n++ :: else fi); G1_limit = (n <= limit); assert(G1_limit) }
/* Those that were let in by this write: nobody before them goes on waiting. */
inline order(in)    { each(i, if :: in >> i & 1 -> each(k, if :: st[k] == WAITING && place[k] && !(in >> k & 1) -> G3_order = (k > i && !past); assert(G3_order) :: else fi) :: else fi); z = 0 }
#define held         ((we[0] -> 1 : 0) + (we[1] -> 1 : 0) + (we[2] -> 1 : 0))
/* A hand may die after anything that it did. Its message comes back, or is lost. */
#define dies  :: d_step { faults -> faults--; faulted = 1 }; goto dead

/* Lets in whoever can be. gone is a run that holds no place any more, in an opening, R for none; look says to look at all holders. */
inline letin() {
  skip;
again:
  skip; d_step { readgate(); in = 0; struck = 0 }
  if
  :: wc == 0 -> goto done
  :: else
  fi;
  if
  :: gone < R && we[gone] && we[gone] <= goneop + 1 -> we[gone] = 0
  :: else
  fi;
  if
  :: gone < R && left -> d_step { if :: place[gone] && st[gone] != WAITING -> struck = struck | 1 << gone :: else fi }
  :: else
  fi;
  j = 0;
  do
  :: j < runs && look && we[j] -> d_step { if :: holder(j, we[j]) :: else -> we[j] = 0 fi; j++ }
  :: j < runs && !(look && we[j]) -> j++
  :: j == runs -> break
  od;
  skip; d_step { line = 0; each(i, if :: place[i] && !(struck >> i & 1) -> line = line | 1 << i :: else fi); z = 0 }
  j = 0;
  do
  :: j < runs && line >> (fromback -> runs - 1 - j : j) & 1 ->
     d_step { n = (fromback -> runs - 1 - j : j); readrun(n);
       if
       :: st[n] != WAITING -> struck = struck | 1 << n
       :: st[n] == WAITING && held < limit -> in = in | 1 << n; we[n] = mine(n)
       :: else
       fi; j++ }
  :: j < runs && !(line >> (fromback -> runs - 1 - j : j) & 1) -> j++
  :: j == runs -> break
  od;
  if
  :: d_step { (!gst[h] || nocas) && !(rst[h] & in) ->
       past = 0; order(in);
       each(i, entry[i] = we[i]; if :: (in | struck) >> i & 1 -> count = (count -> count - 1 : 0); place[i] = (keeps && in >> i & 1 -> 1 : 0) :: else fi;
         if :: in >> i & 1 && st[i] == WAITING -> st[i] = QUEUED :: else fi);
       n = 0; each(i, if :: place[i] -> n++ :: else fi); if :: n == 0 -> count = 0 :: else fi;
       each(k, if :: in >> k & 1 -> wroterun(k) :: else fi); wrotegate() }
     if
     :: skip
     :: d_step { faults -> faults--; faulted = 1 }; goto again  /* its answer is lost */
     fi
  :: d_step { (gst[h] && !nocas) || rst[h] & in }; goto again
  fi;
  do
  :: in & 1 -> d_step { msgs[0]++; in = in & 6 }
  :: in >> 1 & 1 -> d_step { msgs[1]++; in = in & 5 }
  :: in >> 2 & 1 -> d_step { msgs[2]++; in = in & 3 }
  :: !in -> break
  dies
  od;
done:
  skip
}

proctype hand(byte h) {
  byte r, o, we[R], wc, in, struck, line, j, gone, goneop; bit look, left, past, first;
take:
  skip; d_step { busy[h] = 0; o = 0; we[0] = 0; we[1] = 0; we[2] = 0; wc = 0; in = 0; struck = 0; line = 0; j = 0; gone = R; goneop = 0; look = 0; left = 0; past = 0; first = 0; r = 0; rst[h] = 0; gst[h] = 0 }
end:
  if
  :: d_step { msgs[0] -> msgs[0]--; busy[h] = 1; r = 0 }
  :: d_step { msgs[1] -> msgs[1]--; busy[h] = 1; r = 1 }
  :: d_step { msgs[2] -> msgs[2]--; busy[h] = 1; r = 2 }
  :: d_step { cancels && (st[0] == QUEUED || st[0] == WAITING) -> cancels--; busy[h] = 1; r = 0 }; goto cancel
  :: d_step { cancels && runs > 1 && (st[1] == QUEUED || st[1] == WAITING) -> cancels--; busy[h] = 1; r = 1 }; goto cancel
  fi;
read:
  skip; d_step { readrun(r); o = op[r] }
  if
  :: st[r] == ENDED && !stale(r) -> gone = r; goneop = o; look = 0; goto after
  :: st[r] == QUEUED && !stale(r) -> skip
  :: stale(r) -> goto read
  :: else -> goto take
  fi;
enter:
  skip; d_step { readgate() }
  if
  :: we[r] == (noopening -> 1 : o + 1) -> goto begin
  :: we[r] > o + 1 && !late && !noopening -> goto read  /* of a newer opening: this delivery is late */
  :: else -> we[r] = 0
  fi;
  if
  :: wc && !overtakes -> goto join
  :: else
  fi;
  j = 0;
  do
  :: j < runs && held >= limit && we[j] -> d_step { if :: holder(j, we[j]) :: else -> we[j] = 0 fi; j++ }
  :: j < runs && !(held >= limit && we[j]) -> j++
  :: j == runs -> break
  od;
  if
  :: held < limit ->
     if
     :: d_step { (!gst[h] || nocas) -> past = 1; we[r] = (noopening -> 1 : o + 1); n = 1 << r; order(n); past = 0; each(i, entry[i] = we[i]); wrotegate() }
        if :: skip :: d_step { faults -> faults--; faulted = 1 }; goto read fi
     :: d_step { gst[h] && !nocas }; goto read
     fi
  :: else -> goto join
  fi;
begin:
  if
  :: d_step { !stale(r) && st[r] == QUEUED && op[r] == o -> st[r] = RUNNING; wroterun(r); progress() }
  :: d_step { stale(r) || st[r] != QUEUED || op[r] != o }; goto read
  fi;
  if
  :: d_step { st[r] == RUNNING -> st[r] = ENDED; wroterun(r) }
  dies
  fi;
  gone = r; goneop = o; look = 0;
  if
  :: unended -> goto take
  :: !unended -> goto after
  dies
  fi;
join:
  if
  :: apart ->
     if
     :: d_step { !stale(r) && st[r] == QUEUED && op[r] == o -> st[r] = WAITING; wroterun(r) }
     :: d_step { stale(r) || st[r] != QUEUED || op[r] != o }; goto read
     fi;
     if :: skip dies fi;
     skip; d_step { first = (count == 0); each(i, entry[i] = we[i]); count++; place[r] = 1; wrotegate() }
  :: else ->
     if
     :: d_step { !stale(r) && st[r] == QUEUED && op[r] == o && (!gst[h] || nocas) ->
          first = (wc == 0); each(i, entry[i] = we[i]); count = (nocas -> count : wc) + (place[r] -> 0 : 1); place[r] = 1; st[r] = WAITING; wroterun(r); wrotegate() }
     :: d_step { stale(r) || st[r] != QUEUED || op[r] != o || (gst[h] && !nocas) }; goto read
     fi
  fi;
  if
  :: !first || nosecond -> goto take
  :: first && !nosecond -> gone = R; look = 1
  dies
  fi;
  goto after;
cancel:
  if
  :: d_step { st[r] == QUEUED || st[r] == WAITING -> goneop = op[r]; left = (st[r] == WAITING); st[r] = ENDED; wroterun(r) }
  :: d_step { st[r] != QUEUED && st[r] != WAITING }; goto take
  fi;
  if
  :: nowake -> goto take
  :: !nowake -> gone = r; look = 0
  dies
  fi;
after:
  letin();
  goto take;
dead:
  /* the message comes back, or is lost; that of a cancel is none */
  if
  :: left -> skip
  :: else -> if :: d_step { msgs[r] < 3 -> msgs[r]++ } :: skip fi
  fi;
  goto take
}

proctype world() {
end:
  do
  :: d_step { openings && st[0] == ENDED && msgs[0] < 2 -> openings--; st[0] = QUEUED; op[0]++; wroterun(0); msgs[0]++ }
  :: d_step { openings && runs > 1 && st[1] == ENDED && msgs[1] < 2 -> openings--; st[1] = QUEUED; op[1]++; wroterun(1); msgs[1]++ }
  od
}

/* When nothing happens any more: all have ended, where nothing has failed. Else checks look after what is left, again and again, and all end. */
#define open(r) (r < runs && st[r] != ENDED)
proctype mender() {
  byte r, round, e[R];
  timeout -> atomic {
    G2_nobody_forgotten = (faulted || !(open(0) || open(1) || open(2))); assert(G2_nobody_forgotten);
    round = 0;
    do
    :: round < 2 * R ->
       r = 0;
       do
       :: r < runs ->
          if
          :: st[r] == RUNNING -> st[r] = QUEUED       /* its lease runs out */
          :: st[r] == WAITING && !nocheck ->           /* whoever can be is let in */
             each(i, if :: entry[i] && !nolook -> if :: holder(i, entry[i]) :: else -> entry[i] = 0 fi :: else fi);
             n = (entry[0] -> 1 : 0) + (entry[1] -> 1 : 0) + (entry[2] -> 1 : 0);
             each(k, if :: place[k] && st[k] != WAITING -> place[k] = 0 :: place[k] && st[k] == WAITING && n < limit -> place[k] = 0; st[k] = QUEUED; entry[k] = mine(k); n++ :: else fi);
             count = place[0] + place[1] + place[2];
             if :: st[r] == WAITING && !place[r] -> st[r] = QUEUED :: else fi   /* it has lost its place */
          :: else
          fi;
          if
          :: st[r] == QUEUED && entry[r] == mine(r) -> st[r] = ENDED
          :: st[r] == QUEUED && entry[r] != mine(r) ->
             each(i, if :: entry[i] -> if :: holder(i, entry[i]) :: else -> entry[i] = 0 fi :: else fi);
             n = (entry[0] -> 1 : 0) + (entry[1] -> 1 : 0) + (entry[2] -> 1 : 0);
             if
             :: count == 0 && n < limit -> entry[r] = mine(r); st[r] = ENDED
             :: else -> st[r] = WAITING; place[r] = 1; count = place[0] + place[1] + place[2]
             fi
          :: else
          fi;
          r++
       :: else -> break
       od;
       round++
    :: else -> break
    od;
    all_end = !(open(0) || open(1) || open(2)); assert(all_end) }
}

init {
  bounds;
  atomic {
    for (i : 0 .. R - 1) { if :: i < runs -> st[i] = QUEUED; msgs[i] = 1 :: else -> st[i] = ENDED fi };
    run hand(0); run hand(1); run world(); run mender() }
}
