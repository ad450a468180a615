package storetest

import "slices"

// contractChecks has a case for each sentence of the comments on tracking.Store and its parts.
func contractChecks() []check {
	return slices.Concat(
		commitChecks(), uniqueChecks(), deleteChecks(), storeChecks(), oddTextChecks(),
		personChecks(), personFixChecks(), personEventChecks(), rewriteChecks(), taskChecks(), tripChecks(),
		driverChecks(), inviteChecks(),
		fixChecks(), eventChecks(), deliveryChecks(), outboxChecks(), sweepChecks(), claimChecks(), memoChecks(),
		waitingChecks(),
		fileChecks(), exportChecks(), eraseChecks(),
	)
}
