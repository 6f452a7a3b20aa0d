// Liquid for templates that the tenant brings: they fill in what they are given, read no files, and end.
import { Liquid, type Template } from 'liquidjs';

/** Milliseconds that one template may take. */
const RENDER_LIMIT = 100;
/** Characters of a template. */
const PARSE_LIMIT = 200_000;
/** Characters and items that it may make, about. */
const MEMORY_LIMIT = 2_000_000;
/** Templates kept parsed; a tenant has a few. */
const MOST_PARSED = 100;

export interface TenantLiquid {
  /**
   * Fills a template in; in `html` what is filled in is escaped.
   * @throws Error when it is broken, or takes more than it may.
   */
  render(kind: 'html' | 'text', source: string, variables: object): Promise<string>;
}

/** An engine for templates that are data. */
export function createTenantLiquid(): TenantLiquid {
  const limits = { parseLimit: PARSE_LIMIT, renderLimit: RENDER_LIMIT, memoryLimit: MEMORY_LIMIT };
  const base = { ownPropertyOnly: true, jsTruthy: false, templates: {}, ...limits };
  const engines = {
    html: new Liquid({ ...base, outputEscape: escapeOnce }),
    text: new Liquid(base),
  };
  const parsed = new Map<string, Template[]>();
  return {
    render: async (kind, source, variables) => {
      const key = `${kind}\n${source}`;
      const template = parsed.get(key) ?? engines[kind].parse(withMacros(source));
      if (parsed.size >= MOST_PARSED) parsed.clear();
      parsed.set(key, template);
      return String(await engines[kind].render(template, variables));
    },
  };
}

/** The older notation of the hosted service, `@@password@@`, in Liquid's. */
function withMacros(source: string): string {
  return source.replace(/@@\s*([\w.]+)\s*@@/g, '{{ $1 }}');
}

const ESCAPES: Record<string, string> = { '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' };

/** Escapes; what a template has escaped itself, as those of the hosted service must, stays as it is. */
function escapeOnce(value: unknown): string {
  return String(value ?? '')
    .replace(/&(?!(#\d+|#x[\da-f]+|\w+);)/gi, '&amp;')
    .replace(/[<>"']/g, (character) => ESCAPES[character] ?? character);
}
