// SPDX-License-Identifier: Apache-2.0

// Package model keeps what a cluster learned where everybody finds it: in ConfigMaps.
package model

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"libhorus.org/learn"
)

// Store is the ConfigMaps of one namespace: NAME is the one that counts, NAME-0 to NAME-4 are the last versions in turn, so that who
// learns needs a right to these names and no others.
type Store struct {
	Client    kubernetes.Interface
	Namespace string
	Name      string
}

const (
	kept           = 5       // versions, as the chart's role names them
	mostStored     = 900_000 // bytes of a ConfigMap, of 1 MiB that the API server takes
	mostUnpacked   = 64 << 20
	observationKey = "observations.gz"
)

// Of a ConfigMap.
func Of(object *v1.ConfigMap) (learn.Model, error) {
	var out learn.Model
	for field, into := range map[string]*int{"version": &out.Version, "windows": &out.Windows, "rolledBack": &out.RolledBack} {
		n, err := strconv.Atoi(object.Data[field])
		if err != nil || n < 0 {
			return learn.Model{}, fmt.Errorf("ConfigMap %s/%s: data.%s: expected a number of at least 0, found %q", object.Namespace, object.Name, field, object.Data[field])
		}
		*into = n
	}
	out.At, _ = time.Parse(time.RFC3339, object.Data["at"])
	packed, err := gzip.NewReader(bytes.NewReader(object.BinaryData[observationKey]))
	if err == nil {
		out.Observations, err = io.ReadAll(io.LimitReader(packed, mostUnpacked))
	}
	if err != nil {
		return learn.Model{}, fmt.Errorf("ConfigMap %s/%s: binaryData.%s: %w", object.Namespace, object.Name, observationKey, err)
	}
	return out, nil
}

func objectOf(name string, model learn.Model) (*v1.ConfigMap, error) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write(model.Observations) // memory takes all
	_ = writer.Close()
	if packed.Len() > mostStored {
		return nil, fmt.Errorf("model %d: expected at most %d bytes, found %d", model.Version, mostStored, packed.Len())
	}
	return &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"libhorus.org/model": "learned"}},
		Data: map[string]string{
			"version": strconv.Itoa(model.Version), "windows": strconv.Itoa(model.Windows), "rolledBack": strconv.Itoa(model.RolledBack),
			"at": model.At.UTC().Format(time.RFC3339),
		},
		BinaryData: map[string][]byte{observationKey: packed.Bytes()},
	}, nil
}

func (s Store) slot(version int) string { return s.Name + "-" + strconv.Itoa(version%kept) }

// Load returns the model that counts and the one before; version 0 where there is none. What cannot be read is an error.
func (s Store) Load(ctx context.Context) (now, before learn.Model, err error) {
	if now, err = s.load(ctx, s.Name); err != nil || now.Version < 2 {
		return now, before, err
	}
	if before, err = s.load(ctx, s.slot(now.Version-1)); err != nil || before.Version != now.Version-1 {
		before = learn.Model{} // it is not kept
	}
	return now, before, err
}

func (s Store) load(ctx context.Context, name string) (learn.Model, error) {
	object, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return learn.Model{}, nil
	}
	if err != nil {
		return learn.Model{}, err
	}
	return Of(object)
}

// Save makes a model the one that counts. Its version stands first, so that a rollback finds it, where the oldest was.
func (s Store) Save(ctx context.Context, model learn.Model) error {
	maps := s.Client.CoreV1().ConfigMaps(s.Namespace)
	for _, name := range []string{s.slot(model.Version), s.Name} {
		object, err := objectOf(name, model)
		if err != nil {
			return err
		}
		if _, err = maps.Update(ctx, object, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
			_, err = maps.Create(ctx, object, metav1.CreateOptions{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
