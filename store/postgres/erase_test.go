package postgres_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
)

// TestErasedIsInNoByte has a person's deliveries among others in a database whose server has sampled
// its tables, erases the person, deletes a task and drivers, and looks for what was said of them in every
// row, and, once what the doc of the package says was run, in every byte of the database's files.
func TestErasedIsInNoByte(t *testing.T) {
	t.Parallel()
	const name, mobile, street = "Canaryname", "+49 170 5550142", "Canary Street"
	const note, said, picture = "canary note", "canary of the customer", "canary of a picture"
	const driver, his = "Canarydriver", "+49 171 5550143"
	url := template.Database(t)
	s := open(t, url, nil)
	defer s.Close()
	svc, err := tracking.New(s, &tracking.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, yes, here := t.Context(), true, &tracking.LngLat{Lng: 11, Lat: 48}
	_, err = svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "d", Available: &yes, LngLat: here})
	ok(err)
	for i := range 20 {
		id, name, mobile := tracking.DriverID(fmt.Sprint("c", i)), driver, his
		_, err = svc.SaveDriver(ctx, tracking.DriverUpdate{
			ID: id, Name: &name, Mobile: &mobile, LngLat: here, Properties: map[string]string{"name": driver},
		})
		ok(err)
	}
	random := rand.NewChaCha8([32]byte{}) // the server would compress what repeats itself
	var hers []tracking.TaskID
	for i := range 60 {
		who, number, where, noted := fmt.Sprint("Other", i), fmt.Sprint("+49 89 ", 1000+i), "Other Street", "other note"
		if i%3 == 0 {
			who, number, where, noted = name, mobile, fmt.Sprint(street, " ", i), note
		}
		task, err := svc.CreateTask(ctx, tracking.NewTask{
			Type: tracking.TypeDrop, Notes: noted, OrderID: fmt.Sprint("#", i),
			Drop: &tracking.Place{LngLat: here, Address: where, Customer: &tracking.Contact{Name: who, Mobile: number}},
		})
		ok(err)
		if i%3 != 0 {
			continue
		}
		hers = append(hers, task.ID)
		if i%15 != 0 {
			_, err = svc.CancelTask(ctx, task.ID, tracking.Reason{Text: note})
			ok(err)
			continue
		}
		_, err = svc.AssignTask(ctx, task.ID, "d")
		ok(err)
		_, _, err = svc.StartTask(ctx, "d", task.ID, tracking.Step{LngLat: here})
		ok(err)
		data := []byte("\xff\xd8\xff")
		for range 20 {
			noise := make([]byte, 500)
			_, _ = random.Read(noise)
			data = append(append(data, noise...), picture...)
		}
		photo := tracking.NewProof{Kind: tracking.ProofPhoto, Type: "image/jpeg", Data: data}
		_, _, err = svc.AddProof(ctx, "d", task.ID, photo)
		ok(err)
		link, err := svc.TaskLink(ctx, task.ID)
		ok(err)
		ok(svc.NoteFromCustomer(ctx, link, said))
		_, err = svc.FinishTask(ctx, "d", task.ID, tracking.Completion{ReceivedBy: name, Note: note}, tracking.Step{})
		ok(err)
	}
	c := connect(t, url)
	found, err := c.Query(ctx, selectTables)
	ok(err)
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	ok(err)
	execute(t, c, "ANALYZE tracking."+strings.Join(tables, ", tracking."))
	// A search keeps words folded, and the digits of numbers.
	canaries := []string{name, strings.ToLower(name), mobile, "49170555", street, note, said, picture, driver, his}
	seen := func(list []string, place string, data []byte) []string {
		for _, canary := range canaries {
			if bytes.Contains(data, []byte(canary)) {
				list = append(list, fmt.Sprintf("%q in %s", canary, place))
			}
		}
		return list
	}
	inRows := func() (list []string) {
		t.Helper()
		for _, table := range tables {
			var data bytes.Buffer // a copy for people has bytes in hexadecimal
			_, err := c.PgConn().CopyTo(ctx, &data, "COPY tracking."+table+" TO STDOUT (FORMAT binary)")
			ok(err)
			list = seen(list, table, data.Bytes())
		}
		return list
	}
	inFiles := func() (list []string) {
		t.Helper()
		execute(t, c, "CHECKPOINT")
		found, err := c.Query(ctx, selectFiles)
		ok(err)
		var place string
		var data []byte
		_, err = pgx.ForEachRow(found, []any{&place, &data}, func() error {
			list = seen(list, place, data)
			return nil
		})
		ok(err)
		return list
	}
	for place, list := range map[string][]string{"rows": inRows(), "files": inFiles()} {
		for _, canary := range canaries {
			if !strings.Contains(strings.Join(list, "\n"), fmt.Sprintf("%q in", canary)) {
				t.Fatalf("%q is not in the %s to begin with, so that nothing is shown: %q", canary, place, list)
			}
		}
	}

	for _, id := range hers[:2] { // one that was driven, and another
		ok(svc.DeleteTask(ctx, id))
	}
	for i := range 20 {
		ok(svc.ForceDeleteDriver(ctx, tracking.DriverID(fmt.Sprint("c", i))))
	}
	n, err := svc.EraseContact(ctx, mobile)
	if n != len(hers)-2 || err != nil {
		t.Fatalf("erased from %d tasks, error %v", n, err)
	}
	for {
		p, err := svc.Purge(ctx)
		ok(err)
		if p.Total() == 0 {
			break
		}
	}
	if list := inRows(); len(list) > 0 {
		t.Errorf("in rows: %q", list)
	}
	othersEnd := func() { // those that are open, in the databases of other tests as well
		var now int64
		ok(c.QueryRow(ctx, "SELECT pg_current_xact_id()::text::bigint").Scan(&now))
		waitFor(t, func() (ended bool) {
			ok(c.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint > $1", now).Scan(&ended))
			return ended
		})
	}
	othersEnd()
	execute(t, c, "VACUUM (FULL, ANALYZE) tracking.tasks, tracking.trips, tracking.files, tracking.requests, "+
		"tracking.drivers, tracking.positions, tracking.fixes")
	othersEnd()
	execute(t, c, "VACUUM FULL pg_catalog.pg_statistic")
	if list := inFiles(); len(list) > 0 {
		t.Errorf("in files: %q", list)
	}
}

// selectFiles reads all files of the database, by the name of the relation where there is one.
const selectFiles = `
SELECT coalesce((SELECT oid::regclass::text FROM pg_class WHERE pg_relation_filenode(oid)::text = file LIMIT 1), file),
	coalesce(pg_read_binary_file(dir || '/' || file, 0, 1 << 26, true), '')
FROM (SELECT 'base/' || oid AS dir FROM pg_database WHERE datname = current_database()) d, pg_ls_dir(dir) file`
