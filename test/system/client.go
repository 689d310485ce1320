package system

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Status returns the status of a verification, as a replica reports it.
func (p *Project) Status(ctx context.Context, through *Replica, id string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+through.API+"/api/verify/status?id="+id, nil)
	if err != nil {
		return "", fmt.Errorf("create request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+p.Key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var answer struct {
		Status string `json:"status"`
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read status of %s: the answer is %s", id, response.Status)
	}
	err = json.NewDecoder(response.Body).Decode(&answer)
	return answer.Status, err
}
