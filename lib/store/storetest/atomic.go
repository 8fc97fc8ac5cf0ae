package storetest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// neverHalf moves amounts between accounts, in two partitions. A reader who reads all accounts and then holds by a Write of
// checks that nothing moved meanwhile must find the sum unchanged, and so must one who reads what a conflict carries.
func neverHalf(f *fixture) {
	const accounts, amount = 4, 1000
	account := func(i int) store.Key {
		return store.Key{Partition: fmt.Sprint("bank", i%2), Sort: fmt.Sprint(i)}
	}
	keys := make([]store.Key, accounts)
	for i := range keys {
		keys[i] = account(i)
		f.put(keys[i], strconv.Itoa(amount))
	}
	held := func(i store.Item) int {
		n, err := strconv.Atoi(string(i.Value))
		if err != nil {
			f.Errorf("an account holds %q", i.Value)
		}
		return n
	}
	var moved, proven atomic.Int32
	var wg sync.WaitGroup
	for mover := range 4 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(mover)))
			for n := 0; n < 100 && !f.Failed(); n++ {
				a := random.IntN(accounts)
				b := (a + 1 + random.IntN(accounts-1)) % accounts
				items, err := f.Get(f.Context(), keys[a], keys[b])
				if err != nil {
					f.Error(err)
					return
				}
				_, err = f.Write(f.Context(),
					tried(put(keys[a], store.At(items[0]), strconv.Itoa(held(items[0])-n)), uint64(1+mover*1000+n)),
					tried(put(keys[b], store.At(items[1]), strconv.Itoa(held(items[1])+n)), uint64(1+mover*1000+n)))
				switch {
				case err == nil:
					moved.Add(1)
				case store.AsConflict(err) == nil:
					f.Error(err)
				}
			}
		})
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	prove := func() {
		items, err := f.Get(f.Context(), keys...)
		if err != nil {
			f.Error(err)
			return
		}
		checks, sum := make([]store.Op, accounts), 0
		for i := range items {
			checks[i] = check(keys[i], store.At(items[i]))
			sum += held(items[i])
		}
		if _, err := f.Write(f.Context(), checks...); err == nil {
			proven.Add(1)
			if sum != accounts*amount {
				f.Errorf("the accounts held %d together, want %d", sum, accounts*amount)
			}
		} else if store.AsConflict(err) == nil {
			f.Error(err)
		}
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					prove()
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	readers.Wait()
	prove()
	if moved.Load() == 0 || proven.Load() == 0 {
		f.Errorf("%d moves, %d reads proven: nothing was tested", moved.Load(), proven.Load())
	}
}

// counters has many callers grow few counters by read and conditional write, by Write and by WriteEach: no increment may be
// lost, none may count twice.
func counters(f *fixture) {
	const callers, each = 8, 25
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for n := range each {
				k := key(fmt.Sprint("counter", n%3))
				for {
					items, err := f.Get(f.Context(), k)
					if err != nil {
						f.Error(err)
						return
					}
					held, _ := strconv.Atoi(string(items[0].Value))
					op := put(k, store.At(items[0]), strconv.Itoa(held+1))
					if caller%2 == 0 {
						_, err = f.Write(f.Context(), op)
					} else {
						var verdicts []store.Verdict
						if verdicts, err = f.WriteEach(f.Context(), op); err == nil {
							err = verdicts[0].Err
						}
					}
					if err == nil {
						break
					}
					if store.AsConflict(err) == nil {
						f.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	sum, versions := 0, uint64(0)
	for n := range 3 {
		i := f.get(key(fmt.Sprint("counter", n)))
		held, _ := strconv.Atoi(string(i.Value))
		sum += held
		versions += i.Version
	}
	if sum != callers*each || versions != callers*each {
		f.Errorf("%d increments were counted as %d, in %d versions", callers*each, sum, versions)
	}
}
