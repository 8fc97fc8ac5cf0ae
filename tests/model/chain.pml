/* Two gates that runs pass one after the other, from narrow to wide: a run that waits at the wide one keeps its place at the narrow one. Runs are cancelled, and opened by hand.
   docs/model.md reads it aloud. What happens at one gate is line.pml's; here each look at a gate, with the runs of its entries and its line, is one step, and each write of it another: it fails
   where the gate has changed since, or a run that it writes. Runs have their places in line by their numbers. */
#define R 3                                     /* runs */
#define H 2                                     /* hands: workers, and people who cancel */
#define G 2                                     /* gates: 0 is the narrow one */
hidden byte planted, runs = 3, alone, heavy = 1;
hidden byte limit[G];
byte openings, cancels, faults;                  /* how often a run is opened by hand, one is cancelled, a hand dies or an answer is lost */
c_code {
	static void bound(const char *name, unsigned char *v) { if (getenv(name)) { *v = atoi(getenv(name)); } }
}
#define bounds c_code { \
	bound("PLANTED", &planted); bound("RUNS", &runs); bound("LIMIT", &limit[0]); bound("LIMIT2", &limit[1]); bound("ALONE", &alone); bound("HEAVY", &heavy); \
	bound("OPENINGS", &now.openings); bound("CANCELS", &now.cancels); bound("FAULTS", &now.faults); }
/* Each number of PLANTED takes one rule out; 0 is the protocol as it is. */
#define anyorder   (planted == 1)  /* a run passes its gates in an order of its own */
#define nowaiter   (planted == 2)  /* who waits at another gate is no holder */
#define reread     (planted == 3)  /* the second gate is entered in the opening as it is then */
#define onlywide   (planted == 4)  /* whoever ends lets in at the wide gate alone */
#define onlynarrow (planted == 5)  /* whoever ends lets in at the narrow gate alone */
#define onlywhere  (planted == 6)  /* a cancel lets in where the run waited, and nowhere else */
#define light      (planted == 7)  /* who takes fewer units passes who takes more */
#define overtakes  (planted == 8)  /* who finds room enters past those that wait */
#define headcount  (planted == 9)  /* runs are counted, not their units */
#define nosecond   (planted == 10) /* whoever joins a line first does not look at the holders again */
#define nocheck    (planted == 11) /* the check of a run that waits does nothing */
#define atonce     (planted == 12) /* who is let in at the narrow gate starts */
#define nocas      (planted == 13) /* the gate is written whatever stands there */

#define QUEUED 1
#define WAITING 2
#define RUNNING 3
#define ENDED 4

byte st[R], op[R], wat[R], msgs[R];             /* a run, its opening, the gate at which it waits, and its messages */
byte entry[G * R];                               /* the gates: for each run the opening of its entry and one, 0 for none */
bit place[G * R], in[G * R];                     /* the lines; and who is in progress at a gate: let in, and not ended */
bit gst[H * G], busy[H], faulted; byte rst[H];   /* what has changed since a hand has read it: gates, and runs */
hidden byte i, k, n, z;                          /* of one operation; none ends with a loop */
hidden byte G1_limit, G1_let_in, G3_order, G2_G5_nobody_stands_still, all_end;

#define each(v, act) for (v : 0 .. R - 1) { if :: v < runs -> act :: else fi }
#define at(g, r)     ((g) * R + (r))
#define first(r)     ((r) < runs - alone -> 0 : 1)           /* the others pass the wide gate alone */
#define passes(g, r) ((g) == 1 || first(r) == 0)
#define units(g, r)  ((g) == 1 && (r) == 1 && !headcount -> heavy : 1)
#define weighs(g, r) ((g) == 1 && (r) == 1 -> heavy : 1)
#define holder(g, r) (entry[at(g, r)] && entry[at(g, r)] == op[r] + 1 && (st[r] == QUEUED || st[r] == RUNNING || st[r] == WAITING && wat[r] != (g) && !nowaiter))
inline wroterun(r)  { for (i : 0 .. H - 1) { rst[i] = rst[i] | 1 << r }; z = 0 }
inline wrotegate(g) { for (i : 0 .. H - 1) { gst[i * G + g] = 1 }; z = 0 }
inline out(r)       { in[at(0, r)] = 0; in[at(1, r)] = 0 }
/* At no instant are more units in progress than the limit. */
inline counts(g)    { n = 0; each(i, if :: in[at(g, i)] -> n = n + weighs(g, i) :: else fi); G1_limit = (n <= limit[g]); assert(G1_limit) }
/* What a hand sees of a gate: who holds it, and who waits. */
inline look(g)      { gst[h * G + g] = 0; we = 0; used = 0; line = 0;
  each(i, if :: holder(g, i) && !(i == gone && goneop >= op[i]) -> we = we | 1 << i; used = used + units(g, i) :: else fi; if :: place[at(g, i)] -> line = line | 1 << i :: else fi); z = 0 }

/* Lets in at a gate whoever can be. */
inline letin(g) {
  skip;
again:
  skip; d_step { look(g); lets = 0; struck = 0; rst[h] = 0;
    each(i, if
      :: line >> i & 1 && !(st[i] == WAITING && wat[i] == g) -> struck = struck | 1 << i
      :: line >> i & 1 && st[i] == WAITING && wat[i] == g && used + units(g, i) <= limit[g] -> lets = lets | 1 << i; used = used + units(g, i)
      :: line >> i & 1 && st[i] == WAITING && wat[i] == g && used + units(g, i) > limit[g] && !light -> used = limit[g]
      :: else fi); z = 0 }
  if
  :: !line -> goto done
  :: else
  fi;
  if
  :: d_step { (!gst[h * G + g] || nocas) && !(rst[h] & lets) ->
       each(i,
         if :: !(we >> i & 1) && !(lets >> i & 1) -> entry[at(g, i)] = 0 :: else fi;
         if :: (lets | struck) >> i & 1 -> place[at(g, i)] = 0 :: else fi;
         if :: lets >> i & 1 -> entry[at(g, i)] = op[i] + 1; in[at(g, i)] = 1; st[i] = QUEUED :: else fi);
       each(i, if :: lets >> i & 1 -> each(k, if :: k < i && place[at(g, k)] && st[k] == WAITING && wat[k] == g -> G3_order = 0; assert(G3_order) :: else fi) :: else fi);
       counts(g);
       each(k, if :: lets >> k & 1 -> wroterun(k) :: else fi); wrotegate(g) }
     if
     :: skip
     :: d_step { faults -> faults--; faulted = 1 }; goto again  /* its answer is lost */
     fi
  :: d_step { gst[h * G + g] && !nocas || rst[h] & lets }; goto again
  fi;
  if
  :: d_step { each(i, if :: lets >> i & 1 -> msgs[i]++ :: else fi); lets = 0 }
  :: d_step { lets && faults -> faults--; faulted = 1 }; goto dead
  fi;
done:
  skip
}

proctype hand(byte h) {
  byte r, o, g, we, used, line, lets, struck, gone, goneop, to; bit first_in, cancelling, anew;
take:
  skip; d_step { busy[h] = 0; o = 0; g = 0; we = 0; used = 0; line = 0; lets = 0; struck = 0; gone = R; goneop = 0; to = 0; first_in = 0; cancelling = 0; anew = 0; r = 0; rst[h] = 0; gst[h * G] = 0; gst[h * G + 1] = 0 }
end:
  if
  :: d_step { msgs[0] -> msgs[0]--; busy[h] = 1; r = 0 }
  :: d_step { msgs[1] -> msgs[1]--; busy[h] = 1; r = 1 }
  :: d_step { msgs[2] -> msgs[2]--; busy[h] = 1; r = 2 }
  :: d_step { cancels && (st[0] == QUEUED || st[0] == WAITING) -> cancels--; busy[h] = 1; r = 0 }; goto cancel
  :: d_step { cancels && runs > 1 && (st[1] == QUEUED || st[1] == WAITING) -> cancels--; busy[h] = 1; r = 1 }; goto cancel
  fi;
read:
  skip; d_step { rst[h] = 0; o = op[r]; g = (anyorder && r == 1 -> 1 : first(r)); anew = 0 }
  if
  :: d_step { st[r] == ENDED -> gone = r; goneop = op[r]; g = first(r); to = 1 }; goto after
  :: st[r] == QUEUED -> skip
  :: st[r] == WAITING || st[r] == RUNNING -> goto take
  fi;
enter:
  skip; d_step { look(g); if :: reread && g == 1 && st[r] == QUEUED -> o = op[r]; rst[h] = 0 :: else fi }
  if
  :: entry[at(g, r)] == o + 1 && !gst[h * G + g] -> goto next
  :: entry[at(g, r)] > o + 1 && !gst[h * G + g] -> goto read    /* of a newer opening: this delivery is late */
  :: gst[h * G + g] -> goto enter
  :: else
  fi;
  if
  :: line && !overtakes -> goto join
  :: else
  fi;
  if
  :: used + units(g, r) > limit[g] -> goto join
  :: else
  fi;
  if
  :: d_step { !gst[h * G + g] || nocas ->
       each(i, if :: !(we >> i & 1) -> entry[at(g, i)] = 0 :: else fi); entry[at(g, r)] = o + 1;
       if :: st[r] == QUEUED && op[r] == o -> in[at(g, r)] = 1 :: else fi;
       each(k, if :: k < r && place[at(g, k)] && st[k] == WAITING && wat[k] == g -> G3_order = 0; assert(G3_order) :: else fi);
       counts(g); wrotegate(g) }
     if :: skip :: d_step { faults -> faults--; faulted = 1 }; goto read fi
  :: d_step { gst[h * G + g] && !nocas }; goto read
  fi;
next:
  if
  :: atonce -> goto begin
  :: !anyorder && g == 0 -> g = 1; goto enter
  :: anyorder && !anew && first(r) == 0 -> anew = 1; g = 1 - g; goto enter
  :: else
  fi;
begin:
  if
  :: d_step { !(rst[h] >> r & 1) && st[r] == QUEUED && op[r] == o ->
       st[r] = RUNNING; G1_let_in = ((!passes(0, r) || in[at(0, r)]) && in[at(1, r)]); assert(G1_let_in); wroterun(r) }
  :: d_step { rst[h] >> r & 1 || st[r] != QUEUED || op[r] != o }; goto read
  fi;
  if
  :: d_step { st[r] == RUNNING -> st[r] = ENDED; out(r); wroterun(r) }
  :: d_step { faults -> faults--; faulted = 1 }; goto dead
  fi;
  d_step { gone = r; goneop = o; g = (onlywide -> 1 : first(r)); to = (onlynarrow -> first(r) : 1) }
  goto after;
join:
  if
  :: d_step { !(rst[h] >> r & 1) && st[r] == QUEUED && op[r] == o && (!gst[h * G + g] || nocas) ->
       first_in = (line == 0); place[at(g, r)] = 1; entry[at(g, r)] = 0; in[at(g, r)] = 0; st[r] = WAITING; wat[r] = g; wroterun(r); wrotegate(g) }
  :: d_step { rst[h] >> r & 1 || st[r] != QUEUED || op[r] != o || gst[h * G + g] && !nocas }; goto read
  fi;
  if
  :: !first_in || nosecond -> goto take
  :: d_step { first_in && !nosecond -> to = g }; goto after
  :: d_step { faults -> faults--; faulted = 1 }; goto dead
  fi;
cancel:
  if
  :: d_step { st[r] == QUEUED || st[r] == WAITING ->
       gone = r; goneop = op[r]; cancelling = 1; g = (onlywhere && st[r] == WAITING -> wat[r] : first(r)); to = (onlywhere && st[r] == WAITING -> wat[r] : 1);
       st[r] = ENDED; out(r); wroterun(r) }
  :: d_step { st[r] != QUEUED && st[r] != WAITING }; goto take
  fi;
after:
  letin(g);
  if
  :: g < to -> g++; goto after
  :: else -> goto take
  fi;
dead:
  /* its message comes back, or is lost; a cancel has none */
  if
  :: cancelling -> skip
  :: !cancelling -> if :: d_step { msgs[r] < 3 -> msgs[r]++ } :: skip fi
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
  byte r, g, round;
  timeout -> atomic {
    G2_G5_nobody_stands_still = (faulted || !(open(0) || open(1) || open(2))); assert(G2_G5_nobody_stands_still);
    openings = 0; cancels = 0; round = 0;
    do
    :: round < 3 * R ->
       r = 0;
       do
       :: r < runs ->
          if :: st[r] == RUNNING -> st[r] = QUEUED :: else fi;   /* its lease runs out */
          if
          :: st[r] == WAITING && !nocheck ->                     /* whoever can be is let in, from the front of its line */
             g = wat[r]; n = 0;
             each(i, if :: holder(g, i) -> n = n + units(g, i) :: else -> entry[at(g, i)] = 0 fi);
             each(k, if
               :: place[at(g, k)] && !(st[k] == WAITING && wat[k] == g) -> place[at(g, k)] = 0
               :: place[at(g, k)] && st[k] == WAITING && wat[k] == g && n + units(g, k) <= limit[g] -> place[at(g, k)] = 0; st[k] = QUEUED; entry[at(g, k)] = op[k] + 1; n = n + units(g, k)
               :: place[at(g, k)] && st[k] == WAITING && wat[k] == g && n + units(g, k) > limit[g] -> n = limit[g]
               :: else fi)
          :: else
          fi;
          if
          :: st[r] == QUEUED ->                                  /* its message */
             g = first(r);
             do
             :: g < G && st[r] == QUEUED && entry[at(g, r)] == op[r] + 1 -> g++
             :: g < G && st[r] == QUEUED && entry[at(g, r)] != op[r] + 1 ->
                n = 0; z = 0; each(i, if :: holder(g, i) -> n = n + units(g, i) :: else -> entry[at(g, i)] = 0 fi; if :: place[at(g, i)] -> z = 1 :: else fi);
                if
                :: !z && n + units(g, r) <= limit[g] -> entry[at(g, r)] = op[r] + 1
                :: else -> st[r] = WAITING; wat[r] = g; place[at(g, r)] = 1
                fi
             :: g == G && st[r] == QUEUED -> st[r] = ENDED
             :: st[r] != QUEUED -> break
             od
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
  limit[0] = 1; limit[1] = 1;
  bounds;
  atomic {
    for (i : 0 .. R - 1) { if :: i < runs -> st[i] = QUEUED; msgs[i] = 1 :: else -> st[i] = ENDED fi };
    run hand(0); run hand(1); run world(); run mender() }
}
