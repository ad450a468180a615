package main

// The benchmarks of each package.
const (
	root     = ". Benchmark"
	nearby   = "./store/internal/nearby Benchmark"
	memory   = "./store/memory Benchmark"
	sqlite   = "./store/sqlite Benchmark"
	postgres = "./store/postgres Benchmark"
	adapter  = "./httpadapter Benchmark"

	bare    = adapter + "BesideBare/logging_"
	logged  = adapter + "BesideUnlogged/"
	watched = adapter + "Watchers/gzip,_450_points"
)

// lines are the rows of the table.
var lines = []line{
	{
		"nearest 10 of a million drivers, index alone", "a bare R-tree's box search that finds 20",
		side{nearby + "Nearest/10_of_a_million", "ns/op"},
		side{nearby + "Nearest/raw:_rtree_Search_of_a_box_with_20", "ns/op"}, "≤ 1.6",
	},
	{
		"nearest 10 on offer, all on offer", "nearest 10 of all",
		side{nearby + "Nearest/10_to_offer_of_a_million", "ns/op"}, side{nearby + "Nearest/10_of_a_million", "ns/op"}, "≤ 1.2",
	},
	{
		"nearest 10 in sharp clusters", "the same on a sphere, evenly",
		side{nearby + "Spread/clusters", "ns/op"}, side{nearby + "Spread/sphere", "ns/op"}, "≤ 2",
	},
	{
		"nearest 10 at a pole", "the same on a sphere, evenly",
		side{nearby + "Spread/north_pole", "ns/op"}, side{nearby + "Spread/sphere", "ns/op"}, "≤ 2",
	},
	{
		"a driver moves, index alone", "a bare R-tree's Replace",
		side{nearby + "Nearest/move", "ns/op"}, side{nearby + "Nearest/raw:_rtree_Replace", "ns/op"}, "≤ 1.3",
	},
	{
		"`Service.Drivers` near, ten of a million with their records", "the index alone",
		side{root + "DriversNear/all", "ns/op"}, side{nearby + "Nearest/10_of_a_million", "ns/op"}, "≤ 1.8",
	},
	{
		"the index alone, and a bare copy of ten records of a million", "the index alone",
		side{nearby + "Nearest/10_of_a_million,_and_a_bare_copy_of_their_records", "ns/op"},
		side{nearby + "Nearest/10_of_a_million", "ns/op"}, "",
	},
	{
		"`RecordFixes` of one fix, memory", "append to a map of slices under a mutex",
		side{root + "Fix/RecordFixes", "ns/op"}, side{root + "Fix/append_to_a_map_of_slices", "ns/op"}, "≤ 6",
	},
	{
		"one fixer beside one reader, memory", "the fixer alone",
		side{root + "FixerAndReader", "×fixer-alone"}, side{}, "≥ 0.6",
	},
	{
		"one reader beside one fixer, memory", "the reader alone",
		side{root + "FixerAndReader", "×reader-alone"}, side{}, "≥ 0.6",
	},
	{
		"a task created with its event, memory store", "two writes to maps",
		side{memory + "Create/task_and_event", "ns/op"}, side{memory + "Create/raw:_two_maps", "ns/op"}, "≤ 2",
	},
	{
		"a task created through the Service and given to the nearest driver, memory: processor time", "two writes to maps",
		side{root + "Beside/create_auto-assigned,_two_map_writes", "×raw"}, side{}, "≤ 5",
	},
	{
		"first page of all tasks at a million, memory", "the same at ten thousand",
		side{memory + "List/all/1000000", "ns/op"}, side{memory + "List/all/10000", "ns/op"}, "≤ 1.5",
	},
	{"a fix, memory", "", side{memory + "Kept/fixes", "B/row"}, side{}, "≤ 24 B"},
	{"a task in its lists, memory", "", side{memory + "Kept/tasks", "B/row"}, side{}, "≤ 700 B"},
	{"a driver with a position, memory", "", side{memory + "Kept/drivers", "B/row"}, side{}, "≤ 400 B"},
	{
		"8 callers create for the nearest of 100,000 drivers, all over the city", "",
		side{root + "CreateAtOnce/spread", "creates/s"}, side{}, "≥ 20,000/s",
	},
	{"the slowest of these", "", side{root + "CreateAtOnce/spread", "worst-ms"}, side{}, "≤ 20 ms"},
	{"the same, each freed again", "", side{root + "CreateAtOnce/freed_again", "creates/s"}, side{}, "≥ 20,000/s"},
	{"the slowest of these", "", side{root + "CreateAtOnce/freed_again", "worst-ms"}, side{}, "≤ 20 ms"},
	{"the same, all at one place", "", side{root + "CreateAtOnce/at_one_place", "creates/s"}, side{}, "≥ 20,000/s"},
	{"the slowest of these", "", side{root + "CreateAtOnce/at_one_place", "worst-ms"}, side{}, "≤ 20 ms"},
	{"commits of these lost to another", "", side{root + "CreateAtOnce/at_one_place", "%lost"}, side{}, "≤ 1 %"},
	{
		"SQLite: durable fixes, 1 caller", "append + fdatasync in the same groups",
		side{sqlite + "Fixes/1", "fixes/s"}, side{sqlite + "Append/1", "fixes/s"}, "≥ 0.8",
	},
	{
		"SQLite: durable fixes, 64 callers", "append + fdatasync in the same groups",
		side{sqlite + "Fixes/64", "fixes/s"}, side{sqlite + "Append/64", "fixes/s"}, "≥ 0.6",
	},
	{
		"SQLite: durable fixes, 1,000 callers", "append + fdatasync in the same groups",
		side{sqlite + "Fixes/1000", "fixes/s"}, side{sqlite + "Append/1000", "fixes/s"}, "≥ 0.5",
	},
	{
		"SQLite: durable fixes, 64 callers, each 10", "append + fdatasync in the same groups",
		side{sqlite + "FixBatches/10", "fixes/s"}, side{sqlite + "FixBatches/10_append", "fixes/s"}, "",
	},
	{"the processor time of one of these", "", side{sqlite + "FixBatches/10", "cpu-µs/fix"}, side{}, "≤ 4 µs"},
	{"the same, each 100", "", side{sqlite + "FixBatches/100", "cpu-µs/fix"}, side{}, "≤ 1.5 µs"},
	{"written to disk for a fix, one by one", "", side{sqlite + "FixBatches/1", "written-B/fix"}, side{}, "≤ 1,500 B"},
	{"the same, each 10", "", side{sqlite + "FixBatches/10", "written-B/fix"}, side{}, "≤ 300 B"},
	{"the same, each 100", "", side{sqlite + "FixBatches/100", "written-B/fix"}, side{}, "≤ 60 B"},
	{"SQLite: a kept fix in the file", "", side{sqlite + "FixSize", "bytes/fix"}, side{}, "≤ 16 B"},
	{
		"the database alone: a bare row a fix, 1 caller", "append + fdatasync in the same groups",
		side{sqlite + "Append/1_rows", "fixes/s"}, side{sqlite + "Append/1", "fixes/s"}, "",
	},
	{
		"the same, 64 callers", "append + fdatasync in the same groups",
		side{sqlite + "Append/64_rows", "fixes/s"}, side{sqlite + "Append/64", "fixes/s"}, "",
	},
	{
		"the same, 1,000 callers", "append + fdatasync in the same groups",
		side{sqlite + "Append/1000_rows", "fixes/s"}, side{sqlite + "Append/1000", "fixes/s"}, "",
	},
	{
		"SQLite: durable creates, 64 callers", "a bare row each in the same groups",
		side{sqlite + "Create/64", "tasks/s"}, side{sqlite + "Create/64_bare_rows", "tasks/s"}, "≥ 0.5",
	},
	{
		"the processor time of a create", "a bare row each in the same groups",
		side{sqlite + "Create/64", "cpu-µs/task"}, side{sqlite + "Create/64_bare_rows", "cpu-µs/task"}, "≤ 60 µs",
	},
	{
		"written to disk for a create", "a bare row each in the same groups",
		side{sqlite + "Create/64", "written-B/task"}, side{sqlite + "Create/64_bare_rows", "written-B/task"}, "≤ 6,000 B",
	},
	{
		"the database alone: a create's rows, indexes and terms by bare statements", "a bare row each in the same groups",
		side{sqlite + "Create/64_bare_statements", "cpu-µs/task"}, side{sqlite + "Create/64_bare_rows", "cpu-µs/task"}, "",
	},
	{
		"written to disk for these", "a bare row each in the same groups",
		side{sqlite + "Create/64_bare_statements", "written-B/task"}, side{sqlite + "Create/64_bare_rows", "written-B/task"}, "",
	},
	{
		"SQLite: nearest 10 with their records", "the index alone",
		side{sqlite + "Nearest/records", "ns/op"}, side{sqlite + "Nearest/index", "ns/op"}, "",
	},
	{
		"PostgreSQL: durable fixes, 64 callers, one by one", "raw inserts with unnest in the same groups",
		side{postgres + "Fixes/callers=64/batch=1", "calls/s"}, side{postgres + "Fixes/callers=64/batch=1", "raw-calls/s"}, "≥ 0.6",
	},
	{
		"PostgreSQL: durable fixes, 64 callers, each 10", "raw inserts with unnest in the same groups",
		side{postgres + "Fixes/callers=64/batch=10", "calls/s"}, side{postgres + "Fixes/callers=64/batch=10", "raw-calls/s"}, "≥ 0.6",
	},
	{
		"PostgreSQL: durable fixes, 64 callers, each 100", "raw inserts with unnest in the same groups",
		side{postgres + "Fixes/callers=64/batch=100", "calls/s"}, side{postgres + "Fixes/callers=64/batch=100", "raw-calls/s"}, "≥ 0.6",
	},
	{
		"PostgreSQL: durable creates, 64 callers", "raw one-row commits in the same groups",
		side{postgres + "Create/callers=64", "creates/s"}, side{postgres + "Create/callers=64", "raw-creates/s"}, "≥ 0.5",
	},
	{"HTTP create: processor time", "a bare handler with encoding/json", side{bare + "off/create", "×CPU-of-bare"}, side{}, "≤ 1.25"},
	{"HTTP create: rate", "a bare handler with encoding/json", side{bare + "off/create", "×rate-of-bare"}, side{}, "≥ 0.85"},
	{
		"a bare handler that has the Service create the task: processor time", "the bare handler without",
		side{bare + "off/bare_create", "×CPU-of-bare"}, side{}, "",
	},
	{"the rate of this", "the bare handler without", side{bare + "off/bare_create", "×rate-of-bare"}, side{}, ""},
	{"HTTP get: processor time", "a bare handler with encoding/json", side{bare + "off/get", "×CPU-of-bare"}, side{}, "≤ 1.1"},
	{"HTTP get: rate", "a bare handler with encoding/json", side{bare + "off/get", "×rate-of-bare"}, side{}, "≥ 0.95"},
	{
		"a bare handler that finds the task, with as many headers and a deadline: processor time", "the bare handler without",
		side{bare + "off/bare_get", "×CPU-of-bare"}, side{}, "",
	},
	{"the rate of this", "the bare handler without", side{bare + "off/bare_get", "×rate-of-bare"}, side{}, ""},
	{"HTTP list of 10: processor time", "a bare handler with encoding/json", side{bare + "off/list_of_10", "×CPU-of-bare"}, side{}, "≤ 1.1"},
	{"HTTP list of 10: rate", "a bare handler with encoding/json", side{bare + "off/list_of_10", "×rate-of-bare"}, side{}, "≥ 0.95"},
	{"HTTP fix: rate", "a bare handler with encoding/json", side{bare + "off/fix", "×rate-of-bare"}, side{}, "≥ 0.85"},
	{"HTTP create with request logging: rate", "the same with logging off", side{logged + "create", "×rate-of-unlogged"}, side{}, "≥ 0.85"},
	{"HTTP get with request logging: rate", "the same with logging off", side{logged + "get", "×rate-of-unlogged"}, side{}, "≥ 0.85"},
	{
		"a bare handler that logs a line of as many attributes for a get: rate", "the bare handler without",
		side{logged + "bare_get", "×rate-of-unlogged"}, side{}, "",
	},
	{
		"HTTP list of 10 with request logging: rate", "the same with logging off",
		side{logged + "list_of_10", "×rate-of-unlogged"}, side{}, "≥ 0.85",
	},
	{"HTTP fix with request logging: rate", "the same with logging off", side{logged + "fix", "×rate-of-unlogged"}, side{}, "≥ 0.85"},
	{"10,000 watchers of 1,000 trips, 2,000 fixes a second: an event on the wire", "", side{watched, "B/event"}, side{}, "≤ 250 B"},
	{"the 99th percentile from a fix to its event", "", side{watched, "p99-ms"}, side{}, "≤ 50 ms"},
	{"the processor time of an event", "", side{watched, "cpu-µs/event"}, side{}, ""},
	{
		"a watcher's memory in the server", "a bare handler that sends one event and waits",
		side{watched, "KiB/watcher"}, side{adapter + "BareWatchers", "KiB/watcher"}, "≤ 20 KiB",
	},
}
