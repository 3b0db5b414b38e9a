// SPDX-License-Identifier: Apache-2.0

package learn

import "testing"

// As the engines' pages have them.
func TestAnEngineTellsItsBatchBesideItsTokens(t *testing.T) {
	for metric, page := range map[string]string{
		"vllm:inter_token_latency_seconds": `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 5
vllm:num_requests_running{engine="1",model_name="m"} 2
# TYPE vllm:inter_token_latency_seconds histogram
vllm:inter_token_latency_seconds_bucket{engine="0",le="+Inf",model_name="m"} 40
vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} 0.8
vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 40
`,
		"sglang:inter_token_latency_seconds": `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m"} 7
# TYPE sglang:inter_token_latency_seconds histogram
sglang:inter_token_latency_seconds_bucket{le="+Inf",model_name="m"} 40
sglang:inter_token_latency_seconds_sum{model_name="m"} 0.8
sglang:inter_token_latency_seconds_count{model_name="m"} 40
`,
		"tgi_request_mean_time_per_token_duration": `# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 7
# TYPE tgi_request_mean_time_per_token_duration histogram
tgi_request_mean_time_per_token_duration_bucket{le="+Inf"} 40
tgi_request_mean_time_per_token_duration_sum 0.8
tgi_request_mean_time_per_token_duration_count 40
`,
	} {
		found, err := parse([]byte(page))
		if err != nil {
			t.Fatal(err)
		}
		if reading, err := ReadingOf(found, metric); err != nil || reading != (Reading{40, 0.8, 7}) {
			t.Errorf("%s: expected 40 tokens, 0.8 s and 7 requests, found %+v, %v", metric, reading, err)
		}
	}
}
