// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// What a scrape may take: whoever answers may be a tenant's program.
const (
	scrapeWithin = 2 * time.Second
	mostBytes    = 4 << 20
)

// client follows no redirects, so that a job cannot send the observer elsewhere, and keeps no cookies.
var client = &http.Client{
	Timeout:       scrapeWithin,
	Transport:     &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 16 << 10, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Families of metrics by name.
type Families = map[string]*dto.MetricFamily

// Question is who is asked, and what takes the answer.
type Question struct {
	Of   string // what it is, such as "job": for whoever counts
	URL  string
	Take func(Families) error
}

// StepsOf asks for the steps of a job, as ReadingOf takes them, and puts them into `readings`.
func StepsOf(key, url, metric string, readings map[string]Reading) Question {
	return Question{Of: "job", URL: url, Take: func(found Families) error {
		reading, err := ReadingOf(found, metric)
		if err == nil {
			readings[key] = reading
		}
		return err
	}}
}

const scrapesAtOnce = 32

// ScrapeAll asks some at a time. Answers are taken one after the other, and `done` is told how each question went.
func ScrapeAll(ctx context.Context, questions []Question, done func(Question, error)) {
	var (
		mu    sync.Mutex
		wait  sync.WaitGroup
		slots = make(chan struct{}, scrapesAtOnce)
	)
	for _, question := range questions {
		wait.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; wait.Done() }()
			found, err := Scrape(ctx, question.URL)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				err = question.Take(found)
			}
			done(question, err)
		}()
	}
	wait.Wait()
}

// URL of an exposition; no path = metrics.
func URL(address, port, path string) string {
	if path == "" {
		path = "metrics"
	}
	return "http://" + net.JoinHostPort(address, port) + "/" + path
}

// Scrape reads Prometheus text, of 4 MiB at most, within 2 s.
func Scrape(ctx context.Context, url string) (Families, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: expected status 200, found %d", url, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, mostBytes+1))
	if err != nil {
		return nil, err
	}
	if len(body) > mostBytes {
		return nil, fmt.Errorf("%s: expected at most %d bytes, found more", url, mostBytes)
	}
	found, err := parse(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return found, nil
}

func parse(text []byte) (out Families, err error) {
	defer func() { // of a parser that reads what strangers write
		if recover() != nil {
			out, err = nil, errors.New("not the text of Prometheus")
		}
	}()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

func labelOf(m *dto.Metric, name string) string {
	for _, label := range m.GetLabel() {
		if label.GetName() == name {
			return label.GetValue()
		}
	}
	return ""
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	case m.GetUntyped() != nil:
		return m.GetUntyped().GetValue()
	}
	return math.NaN()
}
