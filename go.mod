module github.com/seed-8aba7b13/tracking

go 1.26
