// Turns a page into a preview: it looks like the page, but cannot run scripts or send forms.
import type { Context } from 'koa';
import { previewPolicy } from '../../http/headers.ts';
import type { Assets } from './assets.ts';

/** The colour scheme to show, whatever the reader's preference. */
export type Scheme = 'light' | 'dark';

/** The parts of a content security policy that depend on the page. */
interface Policy {
  nonce: string;
  images: readonly string[] | 'any';
  font: string | undefined;
}

/**
 * Returns a page in one colour scheme. Its style sheets are inlined, and their media queries for the scheme are
 * decided.
 */
export function asPreview(html: string, { scheme, assets }: { scheme: Scheme; assets: Assets }): string {
  const sheets = new Map(assets.names('.css').map((name) => [assets.path(name), name]));
  return (
    html
      .replace(/<link rel="stylesheet" [^<>]*>/g, (link) => {
        const [, , , path = '', , nonce = ''] = link.split('"');
        const name = sheets.get(path);
        return name === undefined ? link : `<style nonce="${nonce}">${assets.content(name)}</style>`;
      })
      // Links are disabled: their targets are not previews and may not be framed.
      .replace(/<a\s[^<>]*>/g, (tag) => tag.replace(/ href="[^"]*"/, ' href="#"'))
      // The pieces that end in a style sheet.
      .split(STYLE_END)
      .map((piece, at, all) => (at < all.length - 1 ? withLastStyle(piece, scheme) : piece))
      .join(STYLE_END)
      .replace('content="light dark"', `content="${scheme}"`)
  );
}

const STYLE_END = '</style>';

/** Returns a piece of a page that ends in a style sheet, with that as {@link inScheme} returns it. */
function withLastStyle(piece: string, scheme: Scheme): string {
  const at = Math.max(0, piece.lastIndexOf('<style'));
  return `${piece.slice(0, at)}${inScheme(piece.slice(at), scheme)}`;
}

/**
 * Returns a style sheet as it applies where the scheme is preferred. `min-width:0` is always true, `max-width:0`
 * never.
 */
function inScheme(css: string, scheme: Scheme): string {
  const isDark = scheme === 'dark' ? '(min-width:0)' : '(max-width:0)';
  const isLight = scheme === 'light' ? '(min-width:0)' : '(max-width:0)';
  return css
    .replaceAll(/\(\s*prefers-color-scheme\s*:\s*dark\s*\)/g, isDark)
    .replaceAll(/\(\s*prefers-color-scheme\s*:\s*light\s*\)/g, isLight)
    .replaceAll(/color-scheme\s*:\s*light dark/g, `color-scheme:${scheme}`);
}

/** Sets the headers of a preview. */
export function setPreviewHeaders(ctx: Context, policy: Policy): void {
  ctx.set('Content-Type', 'text/html; charset=utf-8');
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Content-Security-Policy', previewPolicy(policy));
  // For browsers that do not know `frame-ancestors`.
  ctx.set('X-Frame-Options', 'SAMEORIGIN');
}
