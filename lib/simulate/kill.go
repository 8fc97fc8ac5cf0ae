package simulate

import (
	"context"
	"errors"
	"fmt"
)

// mostRestarts bounds how often the server may die of one and the same request.
const mostRestarts = 10_000

// survive has somebody ask the server for something, and ask again while it dies of it, as workers and clients do.
func (p *player) survive(ctx context.Context, ask func() error) error {
	for range mostRestarts {
		err := ask()
		if !p.ledger.killed() {
			return err
		}
		if err := p.restart(ctx); err != nil {
			return err
		}
	}
	return errors.New("the server dies of the same request again and again: cut at a larger number of writes")
}

// restart starts the process anew and has it recover what it finds, though it may be killed meanwhile: its queue was in memory, workers live on.
func (p *player) restart(ctx context.Context) error {
	for range mostRestarts {
		if err := p.house.start(); err != nil {
			return err
		}
		p.dispatch.Unsettle()
		err := p.ticks.Recover(ctx, p.left.And(p.diary.Unread()), p.wall()+1)
		if !p.ledger.killed() {
			if err != nil {
				return fmt.Errorf("recover: %w", err)
			}
			return nil
		}
	}
	return errors.New("the server dies of its recovery again and again: cut at a larger number of writes")
}
