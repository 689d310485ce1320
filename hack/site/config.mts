// The site of docs/. hack/site.sh copies the pages to bin/site/pages as they lie in the repository, where they are readable, too.
import { renderMermaidSVG } from 'beautiful-mermaid'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { defineConfig } from 'vitepress'

const pages = path.resolve(import.meta.dirname, '../pages')
const repository = 'https://github.com/phoneproof/phoneproof'
const { SITE_URL: address, SITE_FOLDER: folder = '', SITE_VERSION: version = 'main', SITE_VERSIONS: versions = '' } = process.env
const base = (address ? new URL(address).pathname : '/') + folder

// The address of a page, by its file.
const moved: Record<string, string> = {
  'README.md': 'overview.md', 'docs/README.md': 'index.md', 'docs/adr/README.md': 'adr/index.md', 'charts/phoneproof/README.md': 'chart.md',
  'SECURITY.md': 'security-policy.md', 'CONTRIBUTING.md': 'contributing.md', 'CHANGELOG.md': 'changelog.md', 'CODE_OF_CONDUCT.md': 'code-of-conduct.md',
}
const placePage = (file: string) => moved[file] ?? file.replace(/^docs\//, '')

// GitHub's names of anchors, so that a link means the same there and here.
const slugify = (title: string) => title.toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, '').replace(/ /g, '-')

// The address of what a page links to: a page, a picture, or a file in the repository.
function resolveLink(from: string, link: string) {
  const isOurs = link.startsWith(repository + '/blob/main/')
  if (!isOurs && /^([a-z]+:|#|\/)/.test(link)) return link
  const [target, anchor] = link.replace(repository + '/blob/main/', '').split('#')
  const file = path.posix.join(isOurs ? '' : path.posix.dirname(from), decodeURI(target))
  if (file.endsWith('.md') && existsSync(path.join(pages, file)))
    return '/' + placePage(file).replace(/(index)?\.md$/, '') + (anchor ? '#' + anchor : '')
  if (file.startsWith('docs/images/')) return file.replace('docs', '')
  return `${repository}/blob/main/${file}`
}

// The title of a page, by which the list of docs/README.md names it, too.
const readTitle = (file: string) => (file === 'README.md' ? 'Overview' : /^# (.+)/.exec(readFileSync(path.join(pages, file), 'utf8'))?.[1])

// The sidebar is that list: each title of it is a door.
const listed = readFileSync(path.join(pages, 'docs/README.md'), 'utf8').split('\n## ').slice(1)
const sidebar = listed.map((section) => ({
  text: section.split('\n', 1)[0],
  items: [...section.matchAll(/^- \[([^\]]+)\]\(([^)]+)\)/gm)].map(([, text, link]) => {
    if (text !== readTitle(path.posix.join('docs', link))) throw new Error(`docs/README.md: the title of ${link} is not ${text}`)
    return { text, link: resolveLink('docs/README.md', link) }
  }),
}))

// Pictures are written as Mermaid, which GitHub draws by itself. Here they are drawn once, at build time.
function drawPicture(source: string) {
  const [, title = 'Diagram'] = /accTitle: (.*)/.exec(source) ?? []
  const svg = renderMermaidSVG(source.replace(/^ *acc.*\n/gm, ''), {
    bg: 'var(--vp-c-bg)', fg: 'var(--vp-c-text-1)', line: 'var(--vp-c-text-2)', accent: 'var(--vp-c-brand-1)', muted: 'var(--vp-c-text-2)',
    font: 'Inter', transparent: true, embedFontImport: false,
  }).replace(/@import[^;]*;/g, '')
  // As a text, because Vue drops the styles inside of an element.
  const escapeText = (text: string) => text.replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;')
  return `<figure class="picture" tabindex="0" role="img" aria-label="${escapeText(title)}" v-html="${escapeText(JSON.stringify(svg))}"></figure>\n`
}

// A table with three columns or more, and long rows, needs the width that the list of titles would take.
const hasWideTable = (file: string) => /^\|(?=.{240})([^|\n]*\|){3,}$/m.test(readFileSync(file, 'utf8'))

// The search answers whole sentences, so words that each has are left out. It runs in the browser, too: no name from outside.
const processTerm = (term: string) =>
  /^(a|all|an|and|are|as|at|be|by|can|do|does|for|from|get|has|have|how|i|if|in|is|it|its|my|no|not|of|on|one|or|our|so|that|the|this|to|we|what|when|where|which|who|why|will|with|you|your)$/i.test(term)
    ? null : term.toLowerCase()

// What each page has and where it leads, by its address; anchors too, which VitePress does not check.
const anchors = new Map<string, Set<string>>()
const links: [from: string, to: string][] = []

function findDeadLinks(dist: string) {
  return links.filter(([from, to]) => {
    if (/^([a-z]+:|\/\/)/.test(to)) return false
    const [target, anchor] = decodeURIComponent(to).split('#')
    const address = target ? target.replace(base, '/') : from
    const page = anchors.get(address)
    return page ? anchor && !page.has(anchor) : !existsSync(path.join(dist, address))
  })
}

export default defineConfig({
  base,
  title: 'PhoneProof',
  description: 'Verified phone numbers from a message that the user sends: a Kubernetes operator.',
  lang: 'en',
  srcDir: 'pages',
  outDir: 'dist',
  cleanUrls: true,
  rewrites: placePage,
  transformHtml(code, _, { page }) {
    const address = '/' + page.replace(/(index)?\.md$/, '')
    anchors.set(address, new Set([...code.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id)))
    for (const [, to] of code.matchAll(/<a\s[^>]*href="([^"]+)"/g)) links.push([address, to])
  },
  buildEnd({ outDir }) {
    const dead = findDeadLinks(outDir)
    if (dead.length > 0 || links.length < 1000) throw new Error(`dead of ${links.length} links: ${dead.map((link) => link.join(' -> ')).join(', ')}`)
  },
  transformPageData: ({ filePath }) => (hasWideTable(path.join(pages, filePath)) ? { frontmatter: { aside: false } } : {}),
  head: [['link', { rel: 'icon', href: base + 'icon.svg' }]],
  markdown: {
    anchor: { slugify },
    // Darker than the defaults where those have too little contrast.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config(md) {
      md.core.ruler.push('site_links', ({ env, tokens }) => {
        const from = path.relative(pages, env.realPath ?? env.path)
        for (const token of tokens.flatMap((token) => token.children ?? [])) {
          if (token.type === 'link_open') token.attrSet('href', resolveLink(from, token.attrGet('href')!))
          // Nothing is loaded from other servers: of a badge there is the text.
          if (token.type === 'image' && /^https?:/.test(token.attrGet('src')!)) token.type = 'text'
        }
        // An empty cell is no header.
        for (const [i, token] of tokens.entries())
          if (token.type === 'th_open' && tokens[i + 1].content === '') token.tag = tokens[i + 2].tag = 'td'
      })
      // On a narrow screen a row is a list of its cells, each below the title of its column.
      md.core.ruler.push('cell_titles', ({ tokens }) => {
        let titles: string[] = [], column = 0
        for (const [i, token] of tokens.entries()) {
          if (token.type === 'table_open') titles = []
          if (token.type === 'tr_open') column = 0
          if (token.type === 'th_open') titles.push(tokens[i + 1].content.replace(/[`*]/g, ''))
          if (token.type === 'td_open' && column++ > 0) token.attrSet('data-title', titles[column - 1])
        }
      })
      const code = md.renderer.rules.code_inline!
      md.renderer.rules.code_inline = (...all) => code(...all).replace(/([_.,{=/\]-]|[a-z](?=[A-Z]))(?=[^<>]+<\/code>)/g, '$1<wbr>')
      const fence = md.renderer.rules.fence!
      md.renderer.rules.fence = (tokens, i, ...rest) => {
        if (tokens[i].info === 'console') tokens[i].info = 'sh' // the button that copies leaves out the $ of a shell
        return tokens[i].info === 'mermaid' ? drawPicture(tokens[i].content) : fence(tokens, i, ...rest)
      }
      md.renderer.rules.code_block = (tokens, i, ...rest) => fence(tokens.with(i, Object.assign(tokens[i], { info: 'sh' })), i, ...rest)
    },
  },
  themeConfig: {
    logo: '/icon.svg',
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        // What was and why is no answer.
        _render: (source, env, md) => (/^(CHANGELOG|CODE_OF|CONTRIB|docs\/adr)/.test(env.relativePath) ? '' : md.render(source, env)),
        // A word that only resembles one of the question weighs little, or long tables come first.
        miniSearch: { options: { processTerm }, searchOptions: { fuzzy: 0.1, weights: { fuzzy: 0.1, prefix: 0.3 } } },
      },
    },
    sidebar,
    nav: [
      ...sidebar.map(({ text }) => ({ text, link: '/#' + slugify(text) })),
      // Other versions are other sites below the same address.
      { text: version, items: [{ text: 'Changelog', link: '/changelog' },
        ...(address ? versions.split(' ').filter(Boolean) : []).map((name) => ({ text: name, link: `${address}${name}/`, target: '_self' }))] },
    ],
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/blob/main/:path`, text: 'This page in the repository' },
  },
})
