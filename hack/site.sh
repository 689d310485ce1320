#!/usr/bin/env bash
# Builds the website of docs/ into bin/site/dist, which fails on a dead link or anchor, and has a browser and axe-core look at it.
# SITE_URL is the address of all versions, such as https://docs.example.com/, SITE_FOLDER the folder of this one below it, such as v0.1.0/.
# With an address it is built alone: the checks are those of a site at /.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh

if ! command -v npm >/dev/null; then
	echo 'not built: install Node.js 20 or newer with npm' >&2
	exit 1
fi
site=bin/site
mkdir -p $site/.vitepress
if ! cmp -s hack/site/package-lock.json $site/package-lock.json; then
	cp hack/site/package.json hack/site/package-lock.json $site/
	with_progress 'installing VitePress' npm ci --prefix $site --no-audit --no-fund --loglevel=error
fi

# The pages as they lie in the repository, and what they show.
rm -rf $site/pages $site/dist
mkdir -p $site/pages/public
git ls-files --cached --others --exclude-standard '*.md' docs/images ':!internal' ':!.github' | xargs -d '\n' cp --parents -t $site/pages
cp -R docs/images docs/icon.svg $site/pages/public/
cp -R hack/site/config.mts hack/site/theme $site/.vitepress/

export SITE_VERSION=${SITE_VERSION:-$(git describe --tags --exact-match 2>/dev/null || echo main)}
SITE_VERSIONS=$(git tag --list 'v*' --sort=-v:refname | tr '\n' ' ')
export SITE_VERSIONS
with_progress 'building the site' npm exec --prefix $site -- vitepress build $site

[[ -z ${SITE_URL:-} ]] || exit 0

hack/browser-assets.sh
with_progress 'checking pages in a browser' env PHONEPROOF_TEST_SITE=$PWD/$site/dist PHONEPROOF_TEST_SITE_ALL="${ALL:-}" \
	go test -count=1 -run TestSite ./test/browser
du -sh $site/dist | sed 's/\t/ in /'
