package main

func Example() {
	main()
	// Output:
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
