// Package e2e holds end-to-end tests: the real program against the real thing,
// or against a fake one over real sockets. Nothing is imported from here.
//
// Each test that needs more than Go, or more than a few seconds, is skipped
// with its reason where that is missing. DIAGNOSE_REQUIRE_E2E=1, which
// "./test --all" sets, turns the skips into failures and runs the slow ones.
package e2e
