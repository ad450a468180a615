package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

func keyAdd(ctx context.Context, args []string, std streams) error {
	t := newTool("key add", "-store STORE [NAME]",
		"Makes an API key and prints it. The store keeps its hash alone, so that it is printed this once.", std)
	if err := t.parse(args, 0, 1); err != nil {
		return err
	}
	name := strings.Join(t.Args(), "")
	return t.with(ctx, func(_ tracking.Store, svc *tracking.Service) error {
		_, secret, err := svc.CreateKey(ctx, name)
		if errors.Is(err, tracking.ErrInvalid) {
			return t.Wrong("NAME must have at most 200 characters, and no control character")
		}
		if err == nil {
			fmt.Fprintln(std.out, secret)
		}
		return err
	})
}

func keyList(ctx context.Context, args []string, std streams) error {
	t := newTool("key list", "-store STORE", "Lists the API keys, oldest first. What they are nobody knows but who has them.",
		std)
	if err := t.parse(args, 0, 0); err != nil {
		return err
	}
	return t.with(ctx, func(_ tracking.Store, svc *tracking.Service) error {
		keys, err := svc.Keys(ctx)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tCREATED\tREVOKED\tNAME")
		for _, k := range keys {
			revoked := "-"
			if !k.RevokedAt.IsZero() {
				revoked = k.RevokedAt.UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", k.ID, k.CreatedAt.UTC().Format(time.RFC3339), revoked, k.Name)
		}
		return table.Flush()
	})
}

func keyRevoke(ctx context.Context, args []string, std streams) error {
	t := newTool("key revoke", "-store STORE ID", "Makes an API key dead at once, and who has signed in with it.", std)
	if err := t.parse(args, 1, 1); err != nil {
		return err
	}
	return t.with(ctx, func(_ tracking.Store, svc *tracking.Service) error {
		err := svc.RevokeKey(ctx, t.Args()[0])
		if errors.Is(err, tracking.ErrNotFound) {
			return errors.New("the store has no API key with this ID; server key list names them")
		}
		return err
	})
}

// secrets are those made at this start, which are printed; "" is none.
type secrets struct{ key, webhook string }

// firstKey makes the API key of a store that has never had one, and returns "" where it has. Of
// several processes that start at once on a store that they share, one makes it.
func firstKey(ctx context.Context, store tracking.Store, svc *tracking.Service) (string, error) {
	keys, err := svc.Keys(ctx)
	if err != nil || len(keys) > 0 {
		return "", err
	}
	if l, ok := store.(tracking.Limiter); ok {
		mine := false
		err := l.Limit(ctx, "server: first key", time.Minute, func(value []byte) []byte {
			mine = value == nil
			return []byte("made")
		})
		if err != nil || !mine {
			return "", err
		}
	}
	_, secret, err := svc.CreateKey(ctx, "first start")
	return secret, err
}

// webhookMemo is where the store keeps the hash of the webhook's secret that was printed.
const webhookMemo = "server: webhook secret"

// webhookSecret returns the secret that webhooks are signed with, which is derived from that of the
// store, and returns it as made where it was never printed before.
func webhookSecret(ctx context.Context, store tracking.Store, secret []byte) (all []string, made string, err error) {
	svc, err := tracking.New(store, &tracking.Options{Secret: secret})
	if err != nil {
		return nil, "", err
	}
	key, err := svc.DeriveKey(ctx, webhookMemo)
	if err != nil {
		return nil, "", err
	}
	text := "whsec_" + base64.StdEncoding.EncodeToString(key[:])
	sum := sha256.Sum256([]byte(text))
	told, err := store.Memo(ctx, webhookMemo)
	if err != nil {
		return nil, "", err
	}
	if string(told) != string(sum[:]) {
		if err := store.SetMemo(ctx, webhookMemo, sum[:]); err != nil {
			return nil, "", err
		}
		made = text
	}
	return []string{text}, made, nil
}
