module github.com/seed-8aba7b13/tracking/httpadapter/internal/e2e

go 1.26.0

require (
	github.com/seed-8aba7b13/tracking v0.0.0
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
)

replace github.com/seed-8aba7b13/tracking => ../../..
