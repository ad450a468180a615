package main

func Example() {
	main()
	// Output:
	// One delivery, from its creation to its end: in this process, in memory, without a server.
	// The task is assigned to dora.
	// The task is completed: succeeded.
	// driver.available by system
	// task.created by system
	// task.assigned by system
	// task.started by driver:dora
	// trip.started by driver:dora
	// task.completed by driver:dora
	// trip.stopped by driver:dora
}
