package postgres_test

import (
	"context"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
)

// placeOrder writes an order, the task that brings it, and the customer's link, in one transaction.
func placeOrder(ctx context.Context, pool *pgxpool.Pool, svc *tracking.Service, order, address string) (link string, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO orders (id) VALUES ($1)`, order); err != nil {
			return err
		}
		within := svc.Within(postgres.In(tx))
		task, err := within.CreateTask(ctx, tracking.NewTask{
			Type: tracking.TypeDrop, OrderID: order, AutoAssign: true,
			Drop: &tracking.Place{Address: address, LngLat: &tracking.LngLat{Lng: 80.25, Lat: 13.06}},
		})
		if err != nil {
			return err
		}
		if link, err = within.TaskLink(ctx, task.ID); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE orders SET task = $2 WHERE id = $1`, order, task.ID)
		return err
	})
	return link, err
}

// An order and its task are there both or not at all. Once the transaction is committed the task goes
// to a driver, by Service.Run.
func ExampleIn() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://shop@db.example.com/shop")
	if err != nil {
		log.Fatal(err)
	}
	store, err := postgres.New(ctx, pool, nil)
	if err != nil {
		log.Fatal(err)
	}
	svc, err := tracking.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	go svc.Run(ctx)

	link, err := placeOrder(ctx, pool, svc, "4711", "12 Anna Salai")
	if err != nil {
		log.Fatal(err)
	}
	log.Println("https://shop.example.com/track/" + link)
}
