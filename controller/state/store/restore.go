package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// restoredKey is in etcd where the first journal began with a state file: the file's SHA-256.
const restoredKey = "/headgate/restored"

// RestoreError refuses a state file that a cluster is to begin with, as the cluster has begun without it.
type RestoreError struct {
	File string
	Has  Summary // what the cluster's state is
}

// Error says what exists and what can be done.
func (e *RestoreError) Error() string {
	return fmt.Sprintf("--restore %s: it is refused, as the cluster has a state that did not begin with this file (%v): start the members without --restore to go on with that state; "+
		"to begin with the file, stop all members, empty their folders, or delete /headgate/ in an etcd that others run, and start them with --restore", e.File, e.Has)
}

// CheckRestore returns a *RestoreError where a cluster has a state that did not begin with a state file. One
// that did may have changed since then.
func CheckRestore(ctx context.Context, client *clientv3.Client, file string) error {
	sum, err := digest(file)
	if err != nil {
		return err
	}
	s, _, err := Follow(client).Read(ctx)
	if err != nil || s == nil {
		return err
	}
	began, err := client.Get(ctx, restoredKey)
	if err != nil {
		return fmt.Errorf("etcd does not say what the state is: %w", err)
	}
	if len(began.Kvs) > 0 && string(began.Kvs[0].Value) == sum {
		return nil
	}
	return &RestoreError{file, s.state.summary()}
}

func digest(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("state file: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
