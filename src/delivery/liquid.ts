// Liquid for the tenant's own templates. They can read only their variables, no files, and are limited in time and
// size.
import { Liquid, type Template } from 'liquidjs';

/** Milliseconds that one template may take. */
const RENDER_LIMIT = 100;
/** Characters of a template. */
const PARSE_LIMIT = 200_000;
/** Approximate limit of the characters and items that a template creates. */
const MEMORY_LIMIT = 2_000_000;
/** How many parsed templates are kept. */
const MAX_PARSED = 100;

interface TenantLiquid {
  /**
   * Renders a template; `html` escapes variables.
   * @throws Error when it is malformed or exceeds a limit.
   */
  render(kind: 'html' | 'text', source: string, variables: object): Promise<string>;
}

/** Makes the engine of the tenant's templates. */
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
      if (parsed.size >= MAX_PARSED) parsed.clear();
      parsed.set(key, template);
      return String(await engines[kind].render(template, variables));
    },
  };
}

/** Rewrites the hosted service's older notation `@@name@@` to Liquid's. */
function withMacros(source: string): string {
  return source.replace(/@@\s*([\w.]+)\s*@@/g, '{{ $1 }}');
}

const ESCAPES: Record<string, string> = { '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' };

/**
 * Escapes a value, except for entities, because templates written for the hosted service may have escaped it already.
 */
function escapeOnce(value: unknown): string {
  return String(value ?? '')
    .replace(/&(?!(#\d+|#x[\da-f]+|\w+);)/gi, '&amp;')
    .replace(/[<>"']/g, (character) => ESCAPES[character] ?? character);
}
