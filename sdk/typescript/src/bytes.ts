/** Reads a stream of at most `limit` bytes. Returns undefined if it has more. */
export async function readBytes(parts: AsyncIterable<Uint8Array>, limit: number): Promise<Uint8Array | undefined> {
  const read: Uint8Array[] = []
  let size = 0
  for await (const part of parts) {
    size += part.length
    if (size > limit) return undefined
    read.push(part)
  }
  return joinBytes(read)
}

export function joinBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(parts.reduce((size, part) => size + part.length, 0))
  let offset = 0
  for (const part of parts) {
    joined.set(part, offset)
    offset += part.length
  }
  return joined
}

/** Parses a JSON object in UTF-8. Returns undefined if the bytes are anything else. */
export function parseObject(bytes: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
