// Renders the tenant's own templates, in their thread. They can read only their variables, no files.
import { Liquid, type Template } from 'liquidjs';

/** A template to render: of a message, or around our pages. */
export type LiquidJob =
  | {
      /** `html` escapes variables. */
      kind: 'html' | 'text';
      source: string;
      variables: object;
    }
  | {
      kind: 'page';
      source: string;
      variables: object;
      /** The nonce of the page's content security policy. Scripts and styles of the template get it; values do not. */
      nonce: string;
      /**
       * An unguessable text, which marks the two places of the page: `head-<mark>` and `widget-<mark>`. A value that is
       * filled in cannot contain it.
       */
      mark: string;
    };

/** Characters of a template. */
const MAX_SOURCE_LENGTH = 200_000;
/** Approximate limit of the characters and items that a template creates. */
const MAX_MEMORY = { message: 2_000_000, page: 1_000_000 };
const MAX_PARSED = 100;

export const HEAD = /\{%-?\s*auth0:head\s*-?%\}/;
export const WIDGET = /\{%-?\s*auth0:widget\s*-?%\}/;

/**
 * Returns a function that renders a template. It throws an Error for one that is malformed or exceeds a limit. Time is
 * limited by the thread, in processor time: the limit of the template language counts time that passes, and a busy
 * machine would fail templates that take none.
 */
export function createRenderer(): (job: LiquidJob) => string {
  const limitsOf = (of: keyof typeof MAX_MEMORY) => ({
    ownPropertyOnly: true,
    templates: {},
    parseLimit: MAX_SOURCE_LENGTH,
    memoryLimit: MAX_MEMORY[of],
  });
  const engines = {
    html: new Liquid({ ...limitsOf('message'), jsTruthy: false, outputEscape: escapeOnce }),
    text: new Liquid({ ...limitsOf('message'), jsTruthy: false }),
    page: new Liquid({ ...limitsOf('page'), outputEscape: 'escape', strictFilters: true }),
  };
  const parsed = new Map<string, Template[]>();
  return (job) => {
    if (job.kind === 'page') return String(engines.page.parseAndRenderSync(markedSource(job), job.variables));
    const { kind, source, variables } = job;
    const key = `${kind}\n${source}`;
    const template = parsed.get(key) ?? engines[kind].parse(withMacros(source));
    if (parsed.size >= MAX_PARSED) parsed.clear();
    parsed.set(key, template);
    return String(engines[kind].renderSync(template, variables));
  };
}

const markedSource = ({ source, nonce, mark }: LiquidJob & { kind: 'page' }): string =>
  source
    .replace(/<(script|style)(?=[\s/>])/gi, (tag) => `${tag} nonce="${nonce}"`)
    .replace(HEAD, `head-${mark}`)
    .replace(WIDGET, `widget-${mark}`);

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
