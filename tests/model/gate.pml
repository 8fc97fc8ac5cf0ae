/* A job's own gate under `overlap: skip`, for one job: enter, start, skip, retries, cancels, openings by hand, and an edit that fences claims
   off. docs/model.md reads it aloud. Each d_step is one operation of the store; between two of them a worker may sleep, or die. What it has
   read says no more then what stands: a write on the condition of it fails. Messages arrive in any order, as often as they like. */
#define R 3                                     /* runs */
#define W 3                                     /* workers, each with one delivery at a time */
hidden byte planted, runs = 3, workers = 2, limit[3] = 1;
byte again, openings, cancels, edits;            /* how often attempts are tried again, runs opened by hand, runs cancelled, the job edited */
c_code {
	static void bound(const char *name, unsigned char *v) { if (getenv(name)) { *v = atoi(getenv(name)); } }
}
#define bounds c_code { \
	bound("PLANTED", &planted); bound("RUNS", &runs); bound("WORKERS", &workers); bound("LIMIT", &limit[1]); bound("LIMIT2", &limit[2]); \
	bound("AGAIN", &now.again); bound("OPENINGS", &now.openings); bound("CANCELS", &now.cancels); bound("EDITS", &now.edits); }
/* Each number of PLANTED takes one rule out; 0 is the protocol as it is. */
#define nocas      (planted == 1)  /* the gate is written whatever stands there */
#define noopening  (planted == 2)  /* an entry is of its run, whatever its opening */
#define nogen      (planted == 3)  /* an entry does not say for which generation its run was claimed */
#define nolook     (planted == 4)  /* an entry of another opening is replaced without a look at the run */
#define byorder    (planted == 5)  /* an entry of a higher opening is taken for a newer one */
#define weak       (planted == 6)  /* holders are read as they may have stood before */
#define believes   (planted == 7)  /* a write of the gate whose outcome is unknown is believed done */
#define noanew     (planted == 8)  /* a start that met another is tried again without the gate */
#define skipsall   (planted == 9)  /* who was opened by hand is skipped, too */
#define retriesgo  (planted == 10) /* who waits for its retry is no holder */
#define unsure     (planted == 11) /* a skip is written whatever the run has become */
#define nodrop     (planted == 12) /* whoever finds the gate full believes it */
#define nostart    (planted == 13) /* a start is written whatever the run has become */
#define overskip   (planted == 14) /* an edit takes a run that was skipped at the gate for a fire that was missed */
#define unstarted  (planted == 15) /* who has not started is no holder */

#define NONE 0
#define QUEUED 1
#define RUNNING 2
#define RETRYING 3
#define ENDED 4
#define SKIPPED 5
#define FENCED 6                                /* or scheduled again, which is the same for a run on demand */

/* A run: state, generation, opening (0 for none by hand), and whether it has had an attempt in it. */
byte st[R], gen[R], op[R], openedlast[R];
bit tried[R], sent[R];
byte ost[R], oop[R], ogen[R];                   /* as it stood before its last write, where reads are weak */
byte entry[R];                                  /* the gate: for each run its entry, as code() has it; 0 for none */
byte job = 1;                                   /* its generation */
/* A worker: its run and the run as read; whether that has changed since, and the gate; the runs that were in progress at some instant since it read the gate. */
byte wrun[W], wop[W], wgen[W], wst[W], was[W];
bit wtried[W], wstale[W], gstale[W];
byte wentry[W * R];
bit over;
hidden byte i, k, n, most;
hidden byte G1_limit, G4_in_the_way, G4_record_stands, waits_when_skipped, by_hand_not_skipped, all_end;

#define code(o, g)   (1 + (noopening -> 0 : (o)) * 3 + (nogen || noopening -> 0 : (g)))
#define own(r)       code(op[r], gen[r])
#define active(s)    ((s) == QUEUED || (s) == RUNNING || (s) == RETRYING)
#define holds(r)     (active(st[r]) && entry[r] && entry[r] == own(r))
#define busy(r)      (st[r] == RUNNING || tried[r] && active(st[r]))
#define each(v, act) for (v : 0 .. R - 1) { if :: v < runs -> act :: else fi }

/* After any write: who has read what changed, and who is in progress now. */
inline saw() {
  k = 0; each(i, if :: holds(i) || busy(i) -> k = k | 1 << i :: else fi);
  for (i : 0 .. W - 1) { if :: wrun[i] -> was[i] = was[i] | k :: else fi };
  k = 0
}
inline before(r) { if :: weak -> ost[r] = st[r]; oop[r] = op[r]; ogen[r] = gen[r] :: else fi }
inline wrote(r) { for (i : 0 .. W - 1) { if :: wrun[i] == r + 1 -> wstale[i] = 1 :: else fi }; saw() }
inline gatewrote() { for (i : 0 .. W - 1) { if :: wrun[i] -> gstale[i] = 1 :: else fi }; saw() }
/* At no instant are more in progress than was the limit of one of them when it was let in. */
inline count() {
  n = 0; most = 0;
  each(i, if :: busy(i) -> n++; if :: limit[gen[i]] > most -> most = limit[gen[i]] :: else fi :: else fi);
  G1_limit = (n <= most); assert(G1_limit)
}
inline read(h, r) { wop[h] = op[r]; wgen[h] = gen[r]; wst[h] = st[r]; wtried[h] = tried[r]; wstale[h] = 0 }
inline readgate(h) { each(i, wentry[h * R + i] = entry[i]); gstale[h] = 0; was[h] = 0; each(i, if :: holds(i) || busy(i) -> was[h] = was[h] | 1 << i :: else fi); k = 0 }
inline forget(h) { wrun[h] = 0; wop[h] = 0; wgen[h] = 0; wst[h] = 0; wtried[h] = 0; wstale[h] = 0; gstale[h] = 0; was[h] = 0; each(i, wentry[h * R + i] = 0); kept = 0; look = 0 }
#define mine       code(wop[h], wgen[h])
#define others     (full(0) + full(1) + full(2))
#define full(i)    (i != r && i < runs && wentry[h * R + i] -> 1 : 0)
#define kepts      ((kept & 1) + (kept >> 1 & 1) + (kept >> 2 & 1))
#define startable  (wst[h] == QUEUED || wst[h] == RETRYING)
/* A holder, by its entry e, as a run stands, or as it stood before its last write. */
#define holder(s, o, g, e) (active(s) && (noopening || e == code(o, g)) && !(retriesgo && s == RETRYING) && !(unstarted && s == QUEUED))

proctype worker(byte h) {
  byte r, kept, look; bit met;
take:
  skip; d_step { !over -> forget(h); r = 0; met = 0 }
  if
  :: d_step { !over && sent[0] -> r = 0; wrun[h] = 1; read(h, r) }
  :: d_step { !over && runs > 1 && sent[1] -> r = 1; wrun[h] = 2; read(h, r) }
  :: d_step { !over && runs > 2 && sent[2] -> r = 2; wrun[h] = 3; read(h, r) }
  fi;
enter:
  if :: !startable -> goto take :: else fi;
  if :: met && noanew -> goto begin :: else fi;
  d_step { !over -> readgate(h); kept = 0; look = 0; each(i, if :: i != r && wentry[h * R + i] -> kept = kept | 1 << i :: else fi); k = 0 }
  if
  :: wentry[h * R + r] == mine -> goto begin
  :: wentry[h * R + r] && wentry[h * R + r] != mine && byorder && wentry[h * R + r] > mine -> d_step { !over -> read(h, r) }; goto take
  :: wentry[h * R + r] && wentry[h * R + r] != mine && !nolook && !byorder ->
     if :: d_step { !over && wstale[h] -> read(h, r) }; goto enter :: d_step { !over && !wstale[h] -> skip } fi
  :: else
  fi;
  if
  :: others >= limit[wgen[h]] && !nodrop ->                     /* it looks full: the runs of its entries, after the gate */
     do
     :: look < runs ->
        if
        :: kept >> look & 1 ->
           if
           :: d_step { !over -> if :: holder(st[look], op[look], gen[look], wentry[h * R + look]) :: else -> kept = kept & ~(1 << look) fi; look++ }
           :: d_step { !over && weak -> if :: holder(ost[look], oop[look], ogen[look], wentry[h * R + look]) :: else -> kept = kept & ~(1 << look) fi; look++ }
           fi
        :: else -> look++
        fi
     :: else -> break
     od
  :: else
  fi;
  if
  :: kepts < limit[wgen[h]] ->
     if
     :: d_step { !over && (!gstale[h] || nocas) ->
          each(i, entry[i] = (i == r -> mine : (kept >> i & 1 -> wentry[h * R + i] : 0))); gatewrote() }
        if :: goto enter :: skip fi                             /* its answer may be lost */
     :: d_step { !over && gstale[h] && !nocas -> read(h, r) } ; goto enter
     :: believes -> skip                                        /* it may never have been written */
     fi
  :: else ->
     if
     :: (wop[h] || wtried[h]) && !skipsall -> goto take        /* it comes again */
     :: else ->
        if
        :: d_step { !over && (!wstale[h] || unsure) ->
             by_hand_not_skipped = !(wop[h] || wtried[h]); assert(by_hand_not_skipped);
             waits_when_skipped = (st[r] == QUEUED); assert(waits_when_skipped);
             G4_in_the_way = (kept && !(kept & ~was[h])); assert(G4_in_the_way);
             before(r); st[r] = SKIPPED; wrote(r) }
           goto take
        :: d_step { !over && wstale[h] && !unsure -> read(h, r) }; goto enter
        fi
     fi
  fi;
begin:
  skip;
  if
  :: d_step { !over && (!wstale[h] || nostart && st[r] != RUNNING) -> before(r); st[r] = RUNNING; tried[r] = 1; wrote(r); count() }
  :: d_step { !over && wstale[h] && !nostart -> read(h, r); met = 1 }; goto enter
  :: d_step { !over && nostart && st[r] == RUNNING }
  fi;
  goto take
}

/* What becomes of runs besides: attempts end, are tried again, handed back or taken over; people cancel and retry; an edit takes claims away, and gives
   them under its generation. */
#define mayopen(r)  (openings && (st[r] == ENDED || st[r] == SKIPPED))
#define life(r) \
  :: d_step { !over && r < runs && st[r] == RUNNING -> before(r); st[r] = ENDED; wrote(r) } \
  :: d_step { !over && r < runs && st[r] == RUNNING && again -> again--; before(r); st[r] = RETRYING; wrote(r) } \
  :: d_step { !over && r < runs && st[r] == RUNNING && again -> again--; before(r); st[r] = QUEUED; wrote(r) } \
  :: d_step { !over && r < runs && (st[r] == QUEUED || st[r] == RETRYING) && cancels -> cancels--; before(r); st[r] = ENDED; wrote(r) } \
  :: d_step { !over && r < runs && mayopen(r) -> openings--; before(r); st[r] = QUEUED; tried[r] = 0; openedlast[r]++; op[r] = openedlast[r]; gen[r] = job; wrote(r) } \
  :: d_step { !over && r < runs && gen[r] < job && st[r] == QUEUED && !tried[r] -> before(r); st[r] = FENCED; op[r] = 0; gen[r] = job; wrote(r) } \
  :: d_step { !over && r < runs && gen[r] < job && st[r] == QUEUED && !tried[r] -> before(r); st[r] = FENCED; gen[r] = job; wrote(r) } \
  :: d_step { !over && r < runs && gen[r] < job && st[r] == QUEUED && !tried[r] -> before(r); gen[r] = job; wrote(r) } \
  :: d_step { !over && r < runs && gen[r] < job && st[r] == SKIPPED && overskip -> G4_record_stands = 0; assert(G4_record_stands) } \
  :: d_step { !over && r < runs && st[r] == FENCED -> before(r); st[r] = QUEUED; wrote(r) }

proctype world() {
  do
  life(0) life(1) life(2)
  :: d_step { !over && edits -> edits--; job++ }
  od
}

/* In the end, at any instant, all others have died. What is left is delivered, one after the other, and must end. */
#define settled(r) (r >= runs || !active(st[r]) && st[r] != FENCED)
proctype healthy() {
  byte r, round;
  atomic { !over -> over = 1;
    round = 0;
    do
    :: round < R + 1 ->
       r = 0;
       do
       :: r < runs ->
          if :: st[r] == FENCED -> st[r] = QUEUED :: else fi;
          if :: st[r] == RUNNING -> st[r] = QUEUED :: else fi;  /* its lease runs out */
          if
          :: active(st[r]) ->
             if
             :: entry[r] == own(r) -> st[r] = ENDED
             :: entry[r] > own(r) && byorder                     /* read again, for ever */
             :: else ->
                n = 0;
                each(i, if :: i != r && entry[i] -> if :: holder(st[i], op[i], gen[i], entry[i]) || nodrop -> n++ :: else -> entry[i] = 0 fi :: else fi);
                if :: n < limit[gen[r]] -> entry[r] = own(r); st[r] = ENDED :: n >= limit[gen[r]] && !op[r] && !tried[r] -> st[r] = SKIPPED :: else fi
             fi
          :: else
          fi;
          r++
       :: else -> break
       od;
       round++
    :: else -> break
    od;
    all_end = settled(0) && settled(1) && settled(2); assert(all_end);
    r = 0; round = 0; each(i, st[i] = 0; gen[i] = 0; op[i] = 0; openedlast[i] = 0; tried[i] = 0; sent[i] = 0; entry[i] = 0) }
}

init {
  bounds;
  atomic {
    if :: limit[2] -> skip :: else -> limit[2] = limit[1] fi;
    for (i : 0 .. R - 1) { if :: i < runs -> st[i] = QUEUED; gen[i] = 1; sent[i] = 1 :: else fi };
    n = 0; do :: n < workers -> run worker(n); n++ :: else -> break od;
    run world(); run healthy() }
}
