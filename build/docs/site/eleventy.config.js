// What Eleventy reads from a file only; the rest is in ../site.ts. The documents contain examples of Liquid, which must
// stay as they are.
export default () => ({ markdownTemplateEngine: false });
