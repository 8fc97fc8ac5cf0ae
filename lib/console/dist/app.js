import{A as r,_ as m,b as o,lb as p,ma as i}from"./shell.js";var t=document.getElementById("app");t&&i().finally(()=>{r(),o(m(p,{}),t)});
