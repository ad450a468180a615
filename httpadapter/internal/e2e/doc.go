// Package e2e holds tests that need more than embedders of the library should have to download:
// other people's verifiers and clients of what the adapter serves and sends.
package e2e
