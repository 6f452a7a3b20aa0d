// A page that nobody is shown yet: as it would look, and with nothing in it that runs or sends.
import type { Context } from 'koa';
import { previewPolicy } from '../http/headers.ts';
import type { Assets } from './assets.ts';

/** Which of a page's colour schemes is shown, whatever the reader's own is. */
export type Scheme = 'light' | 'dark';

/** What a policy needs to know of a page. */
interface Policy {
  nonce: string;
  images: readonly string[] | 'any';
  font: string | undefined;
}

/** A page in one colour scheme: its style sheets are put into it, where what they ask for the scheme is answered. */
export function asPreview(html: string, { scheme, assets }: { scheme: Scheme; assets: Assets }): string {
  const sheets = new Map(assets.names('.css').map((name) => [assets.path(name), name]));
  return (
    html
      .replace(
        /<link rel="stylesheet" href="([^"]+)" nonce="([^"]+)">/g,
        (link, path: string, nonce: string) => {
          const name = sheets.get(path);
          return name === undefined ? link : `<style nonce="${nonce}">${assets.content(name)}</style>`;
        },
      )
      // What a link leads to is no preview, and may not be framed.
      .replace(/(<a\b[^>]*?\shref=)"[^"]*"/g, '$1"#"')
      .replace(/<style\b[\s\S]*?<\/style>/g, (style) => inScheme(style, scheme))
      .replace('content="light dark"', `content="${scheme}"`)
  );
}

/** A style sheet as it is read where that scheme is preferred. `min-width:0` is true everywhere, `max-width:0` nowhere. */
function inScheme(css: string, scheme: Scheme): string {
  const isDark = scheme === 'dark' ? '(min-width:0)' : '(max-width:0)';
  const isLight = scheme === 'light' ? '(min-width:0)' : '(max-width:0)';
  return css
    .replaceAll(/\(\s*prefers-color-scheme\s*:\s*dark\s*\)/g, isDark)
    .replaceAll(/\(\s*prefers-color-scheme\s*:\s*light\s*\)/g, isLight)
    .replaceAll(/color-scheme\s*:\s*light dark/g, `color-scheme:${scheme}`);
}

/** The headers of a preview. */
export function setPreviewHeaders(ctx: Context, policy: Policy): void {
  ctx.set('Content-Type', 'text/html; charset=utf-8');
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Content-Security-Policy', previewPolicy(policy));
  // For browsers that do not know `frame-ancestors`.
  ctx.set('X-Frame-Options', 'SAMEORIGIN');
}
