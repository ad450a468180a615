// Builds nodes from the description of a trip request. The server has sanitised it (desc_html); here it is read once more into an inert
// document, and only what is on the list is made anew, so that nothing depends on one sanitiser alone.

const allowed = new Set([
  'A', 'B', 'BLOCKQUOTE', 'BR', 'CODE', 'DD', 'DIV', 'DL', 'DT', 'EM', 'H1', 'H2', 'H3', 'H4', 'H5', 'H6', 'HR', 'I', 'LI', 'OL', 'P', 'PRE',
  'S', 'SMALL', 'SPAN', 'STRONG', 'SUB', 'SUP', 'TABLE', 'TBODY', 'TD', 'TH', 'THEAD', 'TR', 'U', 'UL',
]);
const dropped = new Set(['SCRIPT', 'STYLE', 'TEMPLATE', 'NOSCRIPT', 'IFRAME', 'OBJECT', 'EMBED', 'SVG', 'MATH', 'TITLE', 'TEXTAREA', 'SELECT', 'XMP']);

/** Whether a link may be followed: web, mail and telephone, given in full. */
export function safeLink(href: string): boolean {
  return /^(https?:\/\/|mailto:|tel:)/i.test(href.trim());
}

export function safeFragment(html: string, doc: Document = document): DocumentFragment {
  const source = new DOMParser().parseFromString(html, 'text/html');
  const out = doc.createDocumentFragment();
  copy(source.body, out, doc, 0);
  return out;
}

function copy(from: Node, to: Node, doc: Document, depth: number): void {
  if (depth > 32) return;
  for (const n of from.childNodes) {
    if (n.nodeType === Node.TEXT_NODE) {
      to.appendChild(doc.createTextNode(n.nodeValue ?? ''));
      continue;
    }
    if (n.nodeType !== Node.ELEMENT_NODE) continue;
    const el = n as Element;
    const name = el.nodeName.toUpperCase();
    if (dropped.has(name)) continue;
    if (!allowed.has(name)) {
      copy(el, to, doc, depth + 1);
      continue;
    }
    const made = doc.createElement(name.toLowerCase());
    if (name === 'A') {
      const href = el.getAttribute('href') ?? '';
      if (safeLink(href)) {
        made.setAttribute('href', href.trim());
        made.setAttribute('target', '_blank');
        made.setAttribute('rel', 'noopener noreferrer nofollow');
      }
    }
    copy(el, made, doc, depth + 1);
    to.appendChild(made);
  }
}
