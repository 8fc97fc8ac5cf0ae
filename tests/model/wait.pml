/* The run of a workflow in which a step waits: W, beside A and B behind it, which are tasks. Each d_step is one operation of the store or the queue; between two of them a
   hand may sleep, or die. Time goes on when no hand is at work and no check is due: ticks are prompt, and workers need not be. docs/model.md reads it aloud. */
#define H 2                                     /* hands: workers, ticks, and people who cancel */
#define END 14
#define DAY 11                                  /* when a quiet run is looked at */
#define GAP 2                                   /* between two regular checks */
hidden byte planted, until = 1;                 /* until: when W is over */
byte faults, losses, cancels, checkdied;                  /* how often a hand dies, a message is lost, the run is cancelled */
c_code {
	static void bound(const char *name, unsigned char *v) { if (getenv(name)) { *v = atoi(getenv(name)); } }
}
#define bounds c_code { bound("PLANTED", &planted); bound("UNTIL", &until); bound("FAULTS", &now.faults); bound("LOSSES", &now.losses); bound("CANCELS", &now.cancels); }
/* Each number of PLANTED takes one rule out; 0 is the protocol as it is. */
#define rowfirst   (planted == 1)  /* a wait is put before its check is armed */
#define busyquiet  (planted == 2)  /* a run is quiet though a step of it is in a queue */
#define early      (planted == 3)  /* a wait is ended by whoever meets it */
#define twice      (planted == 4)  /* the end of a wait is written whatever has become of it */
#define unsettled  (planted == 5)  /* a run is quiet by its rows, whatever follows from them */
#define nochecked  (planted == 6)  /* the word of a cancel is written before a check is armed */
#define uncut      (planted == 7)  /* the checks of a quiet run are not cut to its wait */
#define over       (planted == 8)  /* a step is put whatever stands there */

#define NONE 0
#define QUEUED 1
#define WAITS 2
#define ENDED 3
#define CANCELLED 4
#define OPENED 5                                /* of the run */
#define STOPPING 6

byte time, st[3], head = QUEUED, owed, ends, put; /* A, B, W; owed: for how long nothing has happened of what is to be seen to; ends of W; sets of steps put once */
bit msg[3], hmsg = 1, armed[END + 2], answered;
bit busy[H];
hidden byte i;
hidden byte P3_not_early, W1_released_once, W2_ends_once, W3_found, W3_in_time, W4_over, W5_stopped;
#define isopen(x) ((x) == QUEUED || (x) == WAITS)
#define regular(t) (((t) / GAP + 1) * GAP)
#define min(a, b) ((a) < (b) -> (a) : (b))
#define due(h) (armed[time])
inline arm(t) { if :: (t) <= END -> armed[t] = 1 :: else fi }
#define dies :: d_step { faults -> faults-- }; goto dead

proctype hand(byte h) {
  byte r, rs[3], hs, next, done; bit check;
take:
  skip; d_step { r = 0; rs[0] = 0; rs[1] = 0; rs[2] = 0; hs = 0; next = 0; done = 0; check = 0; busy[h] = 0 }
end:
  if
  :: d_step { hmsg -> hmsg = 0; r = 3; busy[h] = 1 }; if :: d_step { head == QUEUED -> head = OPENED } :: d_step { head != QUEUED } fi
  :: d_step { msg[0] -> msg[0] = 0; r = 0; busy[h] = 1 }; goto start
  :: d_step { msg[1] -> msg[1] = 0; r = 1; busy[h] = 1 }; goto start
  :: d_step { armed[time] && !busy[1 - h] || armed[time] && !check -> r = 4; check = 1; busy[h] = 1 }; goto look
  :: d_step { cancels && head == OPENED -> cancels--; r = 5; busy[h] = 1 }; goto cancel
  fi;
  if :: goto follow dies fi;
start:
  if
  :: d_step { st[r] == QUEUED && head == OPENED -> st[r] = ENDED; owed = 0 }; if :: goto follow dies fi
  :: d_step { !(st[r] == QUEUED && head == OPENED) }; if :: goto follow dies fi
  fi;
  /* The word of a cancel, and before it a check. */
cancel:
  if
  :: nochecked -> skip
  :: else -> d_step { arm(regular(time)) }
  fi;
  if
  :: d_step { head == OPENED -> head = STOPPING; owed = 0 }
  :: d_step { head != OPENED }; goto take
  fi;
  if :: goto follow dies fi;
  /* A check arms the next one, by what it reads, and then sends what is queued. The pass that it is of comes again where it dies before. */
look:
  skip; d_step { hs = head; rs[0] = st[0] }; d_step { rs[1] = st[1] }; d_step { rs[2] = st[2] };
  d_step {
    next = regular(time);
    if
    :: hs == OPENED && time < until && rs[2] == WAITS && (rs[0] == ENDED && rs[1] == ENDED || unsettled && !isopen(rs[0]) && !isopen(rs[1]) || busyquiet) -> next = (time < DAY -> DAY : END + 1)
    :: else
    fi;
    if :: rs[2] == WAITS && time < until && !uncut && hs == OPENED -> next = min(next, until) :: else fi;
    armed[time] = 0; arm(next) }
  if :: skip :: d_step { faults -> faults--; checkdied++ }; goto dead fi;
  d_step { if :: st[0] == QUEUED && head == OPENED -> msg[0] = 1 :: else fi; if :: st[1] == QUEUED && head == OPENED -> msg[1] = 1 :: else fi }
  /* What follows from the steps as they stand. */
follow:
  skip; d_step { hs = head; rs[0] = st[0] }; d_step { rs[1] = st[1] }; d_step { rs[2] = st[2] };
  if
  :: hs == OPENED -> skip
  :: hs == STOPPING ->
     d_step { for (i : 0 .. 2) { if :: isopen(rs[i]) && isopen(st[i]) -> st[i] = CANCELLED :: else fi }; i = 0 }
     d_step { if :: head == STOPPING && !isopen(st[0]) && !isopen(st[1]) && !isopen(st[2]) -> head = CANCELLED :: else fi; answered = answered || r == 5 }
     goto take
  :: else -> goto take
  fi;
  if
  :: rs[2] == WAITS && (time >= until || early) ->
     if
     :: d_step { st[2] == WAITS || twice -> P3_not_early = (time >= until); assert(P3_not_early); ends++; W2_ends_once = (ends == 1); assert(W2_ends_once); st[2] = ENDED; rs[2] = ENDED; owed = 0 }
     :: d_step { st[2] != WAITS && !twice }; goto follow
     fi;
     if :: goto follow :: d_step { faults -> faults--; if :: check -> checkdied++ :: else fi }; goto dead fi
  :: else
  fi;
  if
  :: rs[2] == NONE ->
     if
     :: d_step { !rowfirst && until < regular(time) -> arm(until) }
     :: d_step { rowfirst || until >= regular(time) }
     fi;
     if :: skip dies fi;
     if
     :: d_step { (st[2] == NONE || over) -> W1_released_once = !(put & 4); assert(W1_released_once); put = put | 4; st[2] = (time >= until -> ENDED : WAITS); rs[2] = st[2] }
     :: d_step { st[2] != NONE && !over }; goto follow
     fi;
     if :: skip dies fi;
     if :: d_step { rowfirst && until < regular(time) -> arm(until) } :: d_step { !rowfirst || until >= regular(time) } fi
  :: else
  fi;
  if
  :: rs[0] == NONE -> d_step { if :: st[0] == NONE -> st[0] = QUEUED; owed = 0; put = put | 1; done = 1 :: else fi }; if :: skip dies fi
  :: rs[0] == ENDED && rs[1] == NONE -> d_step { if :: st[1] == NONE -> st[1] = QUEUED; owed = 0; put = put | 2; done = 2 :: else fi }; if :: skip dies fi
  :: else
  fi;
  if
  :: done -> if :: d_step { msg[done - 1] = 1 } :: d_step { losses -> losses-- } fi
  :: else
  fi;
  d_step { if
    :: head == OPENED && rs[0] == ENDED && rs[1] == ENDED && rs[2] == ENDED -> W4_over = (st[0] == ENDED && st[1] == ENDED && st[2] == ENDED); assert(W4_over); head = ENDED
    :: else
    fi }
  goto take;
dead:
  /* Its message comes back, or is lost; a check and a cancel have none. */
  if
  :: r < 2 -> if :: d_step { msg[r] = 1 } :: d_step { losses -> losses-- } fi
  :: r == 3 -> if :: d_step { hmsg = 1 } :: d_step { losses -> losses-- } fi
  :: else
  fi;
  goto take
}

/* What nobody has a message of, and what is over or to stop, is come upon by a regular check. */
#define lone (head == STOPPING || head == OPENED && (st[0] == QUEUED && !msg[0] || st[1] == QUEUED && !msg[1] || st[0] == ENDED && st[1] == NONE && !msg[0] && !hmsg || st[2] == WAITS && time >= until || st[2] == ENDED && st[0] == ENDED && st[1] == ENDED))
proctype clock() {
end:
  do
  :: d_step { time < END && !busy[0] && !busy[1] && !armed[time] ->
       W3_in_time = (checkdied || !(head == OPENED && st[2] == WAITS && time >= until)); assert(W3_in_time);
       if :: lone -> owed++ :: else -> owed = 0 fi;
       W3_found = (owed <= GAP + 1 + GAP * checkdied); assert(W3_found);
       time++ }
  od
}

init { bounds; atomic { armed[GAP] = 1; run hand(0); run hand(1); run clock() } }
