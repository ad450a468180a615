package otel

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
)

// Prometheus makes what [Options].MeterProvider may be, and the handler that Prometheus reads its
// metrics from. The handler asks for no key, so give it an address of its own that only Prometheus
// reaches, or stand a check before it.
func Prometheus() (metric.MeterProvider, http.Handler, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, nil, err
	}
	return sdk.NewMeterProvider(sdk.WithReader(reader)), promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}
