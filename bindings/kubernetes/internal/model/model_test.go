// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"libhorus.org/learn"
)

// The names are those of the chart's role.
func TestTheLastVersionsAreKeptUnderNamesThatStay(t *testing.T) {
	ctx, client := context.Background(), fake.NewClientset()
	s := Store{Client: client, Namespace: "system", Name: "m"}
	for version := 1; version <= 12; version++ {
		if err := s.Save(ctx, learn.Model{Version: version, At: time.Unix(0, 0)}); err != nil {
			t.Fatal(err)
		}
	}
	maps, err := client.CoreV1().ConfigMaps("system").List(ctx, metav1.ListOptions{})
	names := map[string]bool{}
	for _, one := range maps.Items {
		names[one.Name] = true
	}
	if want := map[string]bool{"m": true, "m-0": true, "m-1": true, "m-2": true, "m-3": true, "m-4": true}; err != nil || fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("expected %v, found %v, %v", want, names, err)
	}
	now, before, err := s.Load(ctx)
	if err != nil || now.Version != 12 || before.Version != 11 {
		t.Errorf("expected 12 after 11, found %d after %d, %v", now.Version, before.Version, err)
	}
}
