// The anchors of headings, for the documents and in the browser.

/** Returns the anchor that GitHub gives a heading: in small letters, with hyphens for spaces, without other signs. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-');
}
