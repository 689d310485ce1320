#!/usr/bin/env bash
# Goes from nothing to two verified numbers: a cluster on this machine, the image, the operator, a project with two replicas,
# and the simulator in place of WhatsApp, Telegram, an end user's phone and the client's webhook receiver. `make demo-cluster` runs it.
#
# It does nothing that could not be typed: each command is printed before it runs. Whatever an earlier run made is used
# again, so a second run takes seconds.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh

kubeconfig=bin/cluster/kubeconfig # where `make cluster-up` leaves it
kubernetes=$PWD/bin/kube          # where that leaves kubectl
export PATH=$kubernetes:$PATH KUBECONFIG=$PWD/$kubeconfig

namespace=phoneproof-demo
operator_namespace=phoneproof-system
deployment=phoneproof-shop
timeout=--timeout=3m # of one wait; a busy machine takes its time
patience=60          # seconds, of everything else

api='' simulator='' api_key='' image='' results=()
declare -A forwards=() # from process ids to the commands of the port-forwards

# quote prints a command as a shell takes it.
quote() {
	local word line=''
	for word in "$@"; do
		[[ $word =~ ^[-+[:alnum:]_./:=,@%]+$ ]] || word="'${word//\'/\'\\\'\'}'"
		line+=" $word"
	done
	printf '%s\n' "${line# }"
}

show() { printf '  $ %s\n' "$*"; }

indent() { sed -u 's/^/    /'; }

# run shows a command, and what it prints.
run() {
	show "$(quote "$@")"
	"$@" </dev/null 2>&1 | indent || fail "$(quote "$@")"
}

# run_line shows a line of the shell, and what it prints.
run_line() {
	show "$1"
	bash -o pipefail -c "$1" </dev/null 2>&1 | indent || fail "$1"
}

kube() { run kubectl --namespace "$namespace" "$@"; }

fail() {
	printf 'demo-cluster: %s\n' "$*" >&2
	exit 1
}

step=0
title() { printf '\n== %d. %s\n' $((++step)) "$1"; }

# forward runs a port-forward in the background, on a free port that kubectl chooses, and sets a variable to its base URL.
forward() {
	local into=$1 service=$2 port=$3 log=$work/$1 address='' deadline=$((SECONDS + patience))
	local command=(kubectl --namespace "$namespace" port-forward --address 127.0.0.1 "service/$service" ":$port")
	show "$(quote "${command[@]}") &"
	: >"$log"
	"${guard[@]}" "${command[@]}" </dev/null >"$log" 2>&1 &
	forwards[$!]="$(quote "${command[@]}")|$log"
	while [[ -z $address ]]; do
		check_forwards
		((SECONDS < deadline)) || fail "$(quote "${command[@]}"): no port reported within $patience s"
		address=$(sed -nE 's/^Forwarding from (127\.0\.0\.1:[0-9]+) -> .*/\1/p;T;q' "$log")
		[[ -n $address ]] || sleep 0.1
	done
	printf '    Forwarding from %s\n' "$address"
	printf -v "$into" 'http://%s' "$address"
}

# check_forwards fails if a port-forward has ended: another program may hold its port by then, and answer.
check_forwards() {
	local process code line log
	for process in "${!forwards[@]}"; do
		kill -0 "$process" 2>/dev/null && continue
		code=0 line=${forwards[$process]%|*} log=${forwards[$process]##*|}
		wait "$process" || code=$?
		unset "forwards[$process]"
		fail "$line ended (exit status $code): $(paste -sd ';' "$log")"
	done
}

end_forwards() {
	((${#forwards[@]} > 0)) || return 0
	kill "${!forwards[@]}" 2>/dev/null
	wait "${!forwards[@]}"
}

# request sends JSON past any proxy, and sets `answer`; anything but success fails with what was answered.
request() {
	local method=$1 url=$2 body=${3-} header='' output status
	local arguments=(--silent --show-error --noproxy '*' --max-time "$patience" --request "$method" --write-out '\n%{http_code}')
	[[ -z $body ]] || arguments+=(--header 'Content-Type: application/json' --data "$body")
	[[ $url != "$api"/api/* ]] || header="header = \"Authorization: Bearer $api_key\""
	# The key comes from a file, so that it is not in the list of processes.
	output=$(curl "${arguments[@]}" --config <(printf '%s\n' "$header") "$url" 2>&1) || { check_forwards; fail "$method $url: $output"; }
	check_forwards
	status=${output##*$'\n'} answer=${output%$'\n'*}
	answer=${answer%$'\n'}
	[[ $status == 2?? ]] || fail "$method $url: $status: $answer"
}

# call shows a request as it would be typed, and its answer.
call() {
	local method=$1 url=$2 body=${3-} line
	line=$(quote curl --silent ${body:+--json "$body"} "$url")
	[[ $url != "$api"/api/* ]] || line+=' --header "Authorization: Bearer $API_KEY"'
	show "$line"
	request "$method" "$url" "$body"
	printf '%s\n' "$answer" | indent
}

# field prints a field of the last answer; nothing if there is none.
field() { jq -r "$1 // empty" <<<"$answer"; }

make_cluster() { run make --no-print-directory cluster-up; }

make_image() {
	run make --no-print-directory cluster-image
	image=$(<bin/cluster/image)
}

install_operator() {
	run_line 'kubectl kustomize hack/demo-cluster/operator | sed "s|ghcr.io/phoneproof/phoneproof:.*|$(cat bin/cluster/image)|" |
      kubectl apply --server-side --filename -'
	run kubectl wait --for=condition=Established crd/verificationprojects.phoneproof.dev crd/verificationrequests.phoneproof.dev "$timeout"
	run kubectl --namespace "$operator_namespace" rollout status deployment/phoneproof-operator "$timeout"
}

# start_simulator makes the credentials first, which its pod needs. They stay for the next run. Those of a messenger begin with
# sim_, so they go to the simulator and mean nothing anywhere else.
start_simulator() {
	run kubectl apply --filename hack/demo-cluster/namespace.yaml
	if ! kubectl --namespace "$namespace" get secret shop >/dev/null 2>&1; then
		local create=(kubectl --namespace "$namespace" create secret generic shop
			--from-literal=access-token=sim_4915112345670:demo --from-literal=app-secret=sim_4915112345670:demo
			--from-literal=bot-token=sim_ada_books_bot:demo)
		show "$(quote "${create[@]}")" '--from-literal=api-key="$(bin/phoneproof keygen)" --from-literal=webhook-secret="$(bin/phoneproof keygen --webhook)"'
		"${create[@]}" --from-literal=api-key="$(bin/phoneproof keygen)" --from-literal=webhook-secret="$(bin/phoneproof keygen --webhook)" |
			indent || fail 'create the credentials'
	fi
	run_line 'sed "s|IMAGE|$(cat bin/cluster/image)|" hack/demo-cluster/simulator.yaml | kubectl apply --filename -'
	kube rollout status deployment/simulator "$timeout"
}

start_project() {
	kube apply --filename hack/demo-cluster/project.yaml
	kube wait --for=create "deployment/$deployment" "$timeout"
	kube wait "--for=jsonpath={.spec.template.spec.containers[0].image}=$image" "deployment/$deployment" "$timeout"
	kube rollout status "deployment/$deployment" "$timeout"
	kube wait --for=condition=Ready vproj/shop "$timeout"
	kube get vproj,pods
	reach
}

# reach makes the API and the simulator reachable from here, as it works with every cluster.
reach() {
	forward api "$deployment" 80
	request GET "$api/openapi.json"
	forward simulator simulator 8090
	request GET "$simulator/healthz"
	local get=(kubectl --namespace "$namespace" get secret shop '--output=go-template={{index .data "api-key" | base64decode}}')
	show "API_KEY=\$($(quote "${get[@]}"))"
	api_key=$("${get[@]}") || fail 'read the API key'
}

# verify plays one verification: the client's backend, its user, the result and the webhook.
verify() {
	local method=$1 number id user began took
	# One number may be verified only a few times in ten minutes.
	printf -v number '+491511%07d' $((SRANDOM % 10000000))
	user=$simulator/sim/users/$number
	call POST "$simulator/sim/users" "{\"name\":\"Ada\",\"phone\":\"$number\"}"
	began=${EPOCHREALTIME/[.,]/}
	call POST "$api/api/verify/init" "{\"phoneNumber\":\"$number\",\"method\":\"$method\"}"
	id=$(field .requestId)
	call POST "$user/send" "{\"link\":\"$(field '.waLink // .tgLink')\"}"
	if [[ $method == TELEGRAM ]]; then
		echo '  The bot asks for the contact, because Telegram does not give it the number; the user presses the button.'
		call POST "$user/share-contact" '{"wait":"30s"}'
	fi
	call GET "$api/api/verify/status?id=$id&wait=20s"
	took=$((${EPOCHREALTIME/[.,]/} - began))
	[[ $(field .status) == VERIFIED ]] || fail "the status is $(field .status), not VERIFIED"
	await_event "$id"
	printf -v "results[${#results[@]}]" '%-8s %s is VERIFIED %d.%02d s after the client asked; the receiver checked both signatures of the webhook' \
		"$method" "$number" $((took / 1000000)) $((took % 1000000 / 10000))
}

# await_event waits until the receiver has the webhook of a request, and fails if it did not accept both signatures.
await_event() {
	local deadline=$((SECONDS + patience)) found=''
	show "curl --silent $simulator/receiver/deliveries"
	until [[ -n $found ]]; do
		request GET "$simulator/receiver/deliveries"
		found=$(field ".deliveries | map(select(.body | contains(\"$1\"))) | first")
		[[ -n $found ]] || ((SECONDS < deadline)) || fail 'the receiver has no event of this request'
		[[ -n $found ]] || sleep 0.2
	done
	answer=$found
	field .body | indent
	printf '    x-webhook-signature: %s, webhook-signature (Standard Webhooks): %s, answered with %s\n' \
		"$(field .signature)" "$(field .standardSignature)" "$(field .status)"
	[[ "$(field .signature) $(field .standardSignature) $(field .status)" == 'valid valid 204' ]] || fail 'the receiver did not accept the webhook'
}

# diagnose shows the state of everything after a failure.
diagnose() {
	[[ -s $kubeconfig ]] || return 0
	printf '\n== Something failed; this is the state\n'
	local command
	for command in 'get vproj,vreq,pods --all-namespaces --output=wide' "--namespace $namespace describe vproj shop" \
		"--namespace $namespace get events --sort-by=.lastTimestamp" "--namespace $operator_namespace logs deployment/phoneproof-operator --tail=20" \
		"--namespace $namespace logs deployment/$deployment --all-pods=true --tail=20" "--namespace $namespace logs deployment/simulator --tail=20"; do
		show "kubectl $command"
		timeout 30 kubectl $command </dev/null 2>&1 | indent
	done
	printf '\nThe cluster is still there to look at. make cluster-down removes it; make demo-cluster tries again.\n'
}

summarize() {
	printf '\n== Done in %d s\n' "$SECONDS"
	printf '  %s\n' "${results[@]}"
	printf '\nTo look around:\n'
	show "export PATH=$kubernetes:\$PATH KUBECONFIG=$KUBECONFIG"
	show 'kubectl get vproj,vreq -A'
	show "kubectl -n $namespace describe vproj shop"
	show "kubectl -n $namespace logs deployment/$deployment --all-pods=true"
	show "kubectl -n $namespace port-forward service/simulator :8090   # then open the address it prints: the phone"
	show 'make demo-cluster   # once more, in seconds'
	show 'make cluster-down   # take everything away'
	printf '\nNothing here is true of a real phone: the credentials are the simulator'\''s. For a real project see config/samples.\n'
}

# require_programs installs curl and jq if they are missing.
require_programs() {
	local absent=() program
	for program in curl jq; do
		command -v "$program" >/dev/null || absent+=("$program")
	done
	((${#absent[@]} == 0)) || with_progress "installing ${absent[*]}" install_packages "${absent[@]}" || fail "${absent[*]} could not be installed; install that, and try again"
}

# narrate prints its input, and after 9 s without a line the command that runs: no wait is silent, also if the output is piped.
narrate() {
	local text part='' command='' began=$SECONDS
	trap '' INT TERM # it ends with its input
	while :; do
		if IFS= read -rt 9 text; then
			[[ $text != '  $ '* ]] || command=${text#'  $ '} began=$SECONDS
			printf '%s%s\n' "$part" "$text"
			part=''
		elif (($? > 128)); then
			part+=$text
			printf '    %d s: %s\n' $((SECONDS - began)) "$command"
		else
			printf '%s' "$part$text"
			return
		fi
	done
}

# prepare makes the folder of the port-forwards' output.
prepare() {
	work=$(mktemp -d)
	# A port-forward must not outlive the demo, however that ends.
	guard=()
	! command -v setpriv >/dev/null || guard=(setpriv --pdeathsig TERM)
}

finish() {
	local code=$?
	end_forwards
	((code == 0)) || diagnose
	rm -rf "$work"
	exec >&- 2>&-
	wait "$narrator"
	exit "$code"
}

main() {
	exec > >(narrate) 2>&1
	narrator=$!
	prepare
	trap finish EXIT
	require_programs
	trap 'exit 130' INT TERM
	printf 'PhoneProof, from nothing to two verified numbers. Every command below can be typed, after this one:\n'
	show "export PATH=$kubernetes:\$PATH KUBECONFIG=$KUBECONFIG"
	title 'A Kubernetes cluster on this machine' && make_cluster
	title 'The image, and the cluster has it' && make_image
	title 'CRDs, roles and the operator' && install_operator
	title 'The simulator: WhatsApp, Telegram, a phone and a webhook receiver, in a pod' && start_simulator
	title 'A project: a verification API with two replicas, under restricted Pod Security' && start_project
	title 'A client asks, and its user sends the message on WhatsApp' && verify WHATSAPP
	title 'The same on Telegram' && verify TELEGRAM
	check_forwards
	summarize
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || main
